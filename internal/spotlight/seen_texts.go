package spotlight

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"
)

const (
	// hashesPerPrincipal is the number of hashes stored for a principal, indexed by the first byte of the hash.
	hashesPerPrincipal = 256
	// maxSeenText limits the length of a text whose hash is stored, in bytes. Servers seldom repeat longer texts.
	maxSeenText = 4 << 10
	// maxSeenPrincipals limits the principals with hashes. The first principals are stored and none is evicted. An
	// eviction would reveal to a principal that another one exists.
	maxSeenPrincipals = 256
)

// seenTexts stores the hashes of texts that need no change and match no rule. So a repeated text is inspected only
// once. It does not store the texts. Each principal has its own hashes, so that timing does not reveal the results of
// others. The zero value is empty. It is safe for concurrent use.
type seenTexts struct {
	mu  sync.RWMutex
	all map[string]*seenHashes
}

// seenHashes holds the hashes of one principal, each at the index of its first byte.
type seenHashes [hashesPerPrincipal]atomic.Pointer[textHash]

type textHash [sha256.Size]byte

// forPrincipal returns the hashes of a principal. It returns nil for a new principal if there are too many principals.
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

// skipSeen returns an Inspector that calls look only for texts that look has not yet passed for the principal. It
// returns nil if look is nil.
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

// has reports whether a hash is stored.
func (s *seenHashes) has(h textHash) bool {
	known := s[h[0]].Load()
	return known != nil && *known == h
}

// add stores a hash. It replaces an earlier hash with the same first byte.
func (s *seenHashes) add(h textHash) {
	kept := h // so that h itself stays on the stack
	s[h[0]].Store(&kept)
}
