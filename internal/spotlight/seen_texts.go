package spotlight

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"
)

const (
	// hashesPerPrincipal is how many texts are remembered for a principal: as many as a byte of their hashes tells
	// apart.
	hashesPerPrincipal = 256
	// maxSeenText is how many bytes a text may have that is remembered. Servers seldom say more than that twice.
	maxSeenText = 4 << 10
	// maxSeenPrincipals is for how many principals texts are remembered: the first ones that are answered. Nobody
	// makes room for another, who could tell by it that they were there.
	maxSeenPrincipals = 256
)

// seenTexts remembers of texts that they are as they may be read and meet no rule, so that what a server says again
// and again is looked at once: that it is done, a list that is still empty, a page that did not change. It keeps
// hashes and no text; and each principal has places of their own, or the time that a look takes would tell them what
// others were answered. The zero value remembers nothing. It is for several goroutines.
type seenTexts struct {
	mu  sync.RWMutex
	all map[string]*seenHashes
}

// A seenHashes has the places of one principal.
type seenHashes [hashesPerPrincipal]atomic.Pointer[textHash]

type textHash [sha256.Size]byte

// forPrincipal gives the places of a principal; nil where there are too many.
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

// skipSeen gives a Look that does not look at what was looked at before for that principal, and is as look is; nil of
// nil.
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
		place := &own[this[0]]
		if known := place.Load(); known != nil && *known == this {
			return text, nil
		}
		if shown, rules = look(text); shown == text && len(rules) == 0 {
			kept := this // what is not kept stays on the stack
			place.Store(&kept)
		}
		return shown, rules
	}
}
