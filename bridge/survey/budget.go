package survey

import (
	"hash/maphash"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

const (
	// freeChange is how many bytes of what a server lists may change whenever they do, changeRate how many a second are forgotten.
	freeChange = 16 << 20
	changeRate = 1 << 10
)

// A Budget says when a server may be asked for its lists again. What changes in them is on record for ever: a server that had it all
// change every few seconds would fill the disk. One that changes as servers do never waits. The zero Budget is that of a server that
// never changed. It is for one goroutine.
type Budget struct {
	// spent is how many bytes changed that are not forgotten yet, at that time.
	spent float64
	at    time.Time
}

// Spend takes note of a change: what is in one listing and not in the other counts, but for the first listing of all. It gives what
// people are told where the next one is to wait, and nothing otherwise.
func (b *Budget) Spend(before, after *drawbridge.Listing, now time.Time) (troubles []string) {
	b.forget(now)
	if before != nil {
		b.spent += float64(changed(before, after))
	}
	if wait := b.Wait(now); wait > 0 {
		troubles = append(troubles, "its lists change so much that no change is looked at before "+now.Add(wait).UTC().Format(time.RFC3339))
	}
	return troubles
}

// Wait is how long the server is not to be asked, from now on.
func (b *Budget) Wait(now time.Time) time.Duration {
	b.forget(now)
	return time.Duration(max(0, b.spent-freeChange) / changeRate * float64(time.Second))
}

func (b *Budget) forget(now time.Time) {
	b.spent = max(0, b.spent-max(0, now.Sub(b.at).Seconds())*changeRate)
	b.at = now
}

// changed is how many bytes are in one listing only: of items, and of the instructions.
func changed(before, after *drawbridge.Listing) (n int) {
	type item struct {
		kind int
		sum  uint64
	}
	seed := maphash.MakeSeed()
	gone := map[item]int{} // and how large they are
	for k := range kinds {
		for _, raw := range *kinds[k].of(before) {
			gone[item{k, maphash.Bytes(seed, raw)}] = len(raw)
		}
	}
	var stay []item
	for k := range kinds {
		for _, raw := range *kinds[k].of(after) {
			it := item{k, maphash.Bytes(seed, raw)}
			if _, was := gone[it]; was {
				stay = append(stay, it)
			} else {
				n += len(raw)
			}
		}
	}
	for _, it := range stay {
		delete(gone, it)
	}
	for _, size := range gone {
		n += size
	}
	if before.Instructions != after.Instructions {
		n += len(before.Instructions) + len(after.Instructions)
	}
	return n
}
