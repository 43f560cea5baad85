package spotlight

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"
)

const (
	// hashesPerPrincipal is the number of texts remembered for a principal, indexed by one byte of their hash.
	hashesPerPrincipal = 256
	// maxSeenText bounds the length of a remembered text, in bytes. Servers seldom repeat longer ones.
	maxSeenText = 4 << 10
	// maxSeenPrincipals bounds the principals, first come first served. None is evicted, because an eviction would
	// reveal that another principal was there.
	maxSeenPrincipals = 256
)

// seenTexts remembers texts that need no change and meet no rule, so that a repeated text is inspected once. It stores
// hashes and no text. Each principal has its own, so that timing does not reveal the results of others. The zero value
// is empty, and it is safe for concurrent use.
type seenTexts struct {
	mu  sync.RWMutex
	all map[string]*seenHashes
}

// seenHashes are the hashes of one principal.
type seenHashes [hashesPerPrincipal]atomic.Pointer[textHash]

type textHash [sha256.Size]byte

// forPrincipal returns the hashes of a principal; nil if there are too many principals.
func (s *seenTexts) forPrincipal(principal string) *seenHashes {
	s.mu.RLock()
	own := s.all[principal]
	full := len(s.all) >= maxSeenPrincipals
	s.mu.RUnlock()
	if own != nil || full {
		return own
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if own = s.all[principal]; own == nil && len(s.all) < maxSeenPrincipals {
		if s.all == nil {
			s.all = map[string]*seenHashes{}
		}
		own = new(seenHashes)
		s.all[principal] = own
	}
	return own
}

// skipSeen returns an Inspector that skips texts which look already passed for that principal; nil for a nil look.
func (s *seenTexts) skipSeen(principal string, look Inspector) Inspector {
	if look == nil {
		return nil
	}
	own := s.forPrincipal(principal)
	if own == nil {
		return look
	}
	return func(text string) (shown string, rules []string) {
		if len(text) > maxSeenText {
			return look(text)
		}
		var room [512]byte
		this := textHash(sha256.Sum256(append(room[:0], text...)))
		if own.has(this) {
			return text, nil
		}
		if shown, rules = look(text); shown == text && len(rules) == 0 {
			own.add(this)
		}
		return shown, rules
	}
}

// has reports whether a hash is remembered.
func (s *seenHashes) has(h textHash) bool {
	known := s[h[0]].Load()
	return known != nil && *known == h
}

// add remembers a hash in place of an earlier one with the same first byte.
func (s *seenHashes) add(h textHash) {
	kept := h // a hash that is not kept stays on the stack of the caller
	s[h[0]].Store(&kept)
}
