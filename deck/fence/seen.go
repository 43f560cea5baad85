package fence

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"
)

const (
	// places is how many texts are remembered for a principal: as many as a byte of their hashes tells apart.
	places = 256
	// longest is how many bytes a text may have that is remembered. Servers seldom say more than that twice.
	longest = 4 << 10
	// mostPrincipals is for how many principals texts are remembered: the first ones that are answered. Nobody makes room for another,
	// who could tell by it that they were there.
	mostPrincipals = 256
)

// seen remembers of texts that they are as they may be read and meet no rule, so that what a server says again and again is looked
// at once: that it is done, a list that is still empty, a page that did not change. It keeps hashes and no text; and each principal
// has places of their own, or the time that a look takes would tell them what others were answered. The zero value remembers nothing.
// It is for several goroutines.
type seen struct {
	mu  sync.RWMutex
	all map[string]*shelf
}

// A shelf has the places of one principal.
type shelf [places]atomic.Pointer[sum]

type sum [sha256.Size]byte

// of gives the places of a principal; nil where there are too many.
func (s *seen) of(principal string) *shelf {
	s.mu.RLock()
	own := s.all[principal]
	full := len(s.all) >= mostPrincipals
	s.mu.RUnlock()
	if own != nil || full {
		return own
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if own = s.all[principal]; own == nil && len(s.all) < mostPrincipals {
		if s.all == nil {
			s.all = map[string]*shelf{}
		}
		own = new(shelf)
		s.all[principal] = own
	}
	return own
}

// before gives a Look that does not look at what was looked at before for that principal, and is as look is; nil of nil.
func (s *seen) before(principal string, look Look) Look {
	if look == nil {
		return nil
	}
	own := s.of(principal)
	if own == nil {
		return look
	}
	return func(text string) (shown string, rules []string) {
		if len(text) > longest {
			return look(text)
		}
		var room [512]byte
		this := sum(sha256.Sum256(append(room[:0], text...)))
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
