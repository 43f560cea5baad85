package deck

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"
)

const (
	// hashesPerPrincipal is the number of hashes stored for a principal: one for each value of the hash's first byte.
	hashesPerPrincipal = 256
	// maxSeenText is the maximum length of a text whose hash is stored, in bytes. Servers seldom repeat longer texts.
	maxSeenText = 4 << 10
	// maxSeenPrincipals is the maximum number of principals with stored hashes. Texts for later principals are always
	// inspected. No principal is evicted, because the timing would reveal to it that another principal exists.
	maxSeenPrincipals = 256
)

// seenTexts stores the hashes of texts that an [Inspector] returned unchanged and without a matched rule. A repeated
// text is therefore inspected only once. The texts are not stored. Each principal has its own hashes, so that timing
// does not reveal the results of other principals. The zero value is empty. It is safe for concurrent use.
type seenTexts struct {
	mu  sync.RWMutex
	all map[string]*seenHashes
}

// seenHashes contains the hashes of one principal. The index of a hash is its first byte.
type seenHashes [hashesPerPrincipal]atomic.Pointer[textHash]

type textHash [sha256.Size]byte

// forPrincipal returns the hashes of a principal. It returns nil for a new principal if there are already
// maxSeenPrincipals principals.
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

// skipSeen returns an Inspector that calls look only for new texts. A text is not new if look already returned it
// unchanged for the principal, without a matched rule. If look is nil, skipSeen returns nil.
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
