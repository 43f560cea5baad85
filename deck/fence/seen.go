package fence

import (
	"crypto/sha256"
	"encoding/binary"
	"sync/atomic"
)

const (
	// places is how many texts are remembered: as many as a byte of their hashes tells apart.
	places = 256
	// longest is how many bytes a text may have that is remembered. Servers seldom say more than that twice.
	longest = 4 << 10
)

// seen remembers of texts that they are as they may be read and meet no rule, so that what a server says again and again is looked
// at once: that it is done, a list that is still empty, a page that did not change. It keeps hashes and no text; and to each
// principal it is another one, since who could tell by the time it takes that a text was seen would know what others were
// answered. The zero value remembers nothing. It is for several goroutines.
type seen [places]atomic.Pointer[sum]

type sum [sha256.Size]byte

// before gives a Look that does not look at what was looked at before for that principal, and is as look is; nil of nil.
func (s *seen) before(principal string, look Look) Look {
	if look == nil {
		return nil
	}
	return func(text string) (shown string, rules []string) {
		if len(text) > longest {
			return look(text)
		}
		this := sumOf(principal, text)
		place := &s[this[0]]
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

// sumOf is the hash of a text for a principal. How long their name is stands first: nobody else's name and text are the same bytes.
func sumOf(principal, text string) sum {
	var room [512]byte
	b := append(binary.BigEndian.AppendUint32(room[:0], uint32(len(principal))), principal...)
	return sha256.Sum256(append(b, text...))
}
