package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

const (
	// freeChangeBytes is how many bytes of what a server lists may change whenever they do, forgottenBytesPerSecond
	// how many a second are forgotten.
	freeChangeBytes         = 16 << 20
	forgottenBytesPerSecond = 1 << 10
	// wholeListingDivisor is which part of the whole listing counts as well: it is looked at and saved whole, if only
	// its order changed.
	wholeListingDivisor = 64
	// resaveInterval is how long a listing that says what the last one said is not saved once more: it is written
	// whole each time.
	resaveInterval = time.Minute
)

// A relistBudget says when a server may be asked for its lists again. What changes in them is on record for ever: a
// server that had it all change every few seconds would fill the disk. One that changes as servers do never waits. The
// zero Budget is that of a server that never changed. It is for one goroutine.
type relistBudget struct {
	// spent is how many bytes changed that are not forgotten yet, at that time.
	spent float64
	at    time.Time
	// saved is when a listing was saved last.
	saved time.Time
}

// recordChange takes note of a change: what is in one listing and not in the other counts, but for the first listing
// of all. It says whether the listing is worth being saved, and takes it that it is then: it says something else, or
// was not saved for a while.
func (b *relistBudget) recordChange(before, after *drawbridge.Listing, now time.Time) (save bool) {
	b.decaySpent(now)
	switch {
	case before == nil:
	case !sameListing(before, after):
		b.spent += float64(changedBytes(before, after)) + float64(listingSize(after))/wholeListingDivisor
	case now.Sub(b.saved).Abs() < resaveInterval:
		return false
	}
	b.saved = now
	return true
}

// listingSize is how many bytes a listing has.
func listingSize(l *drawbridge.Listing) int {
	n := len(l.Instructions)
	for k := range listKinds {
		for _, raw := range *listKinds[k].of(l) {
			n += len(raw)
		}
	}
	return n
}

// waitTime is how long the server is not to be asked, from now on.
func (b *relistBudget) waitTime(now time.Time) time.Duration {
	b.decaySpent(now)
	return time.Duration(max(0, b.spent-freeChangeBytes) / forgottenBytesPerSecond * float64(time.Second))
}

func (b *relistBudget) decaySpent(now time.Time) {
	b.spent = max(0, b.spent-max(0, now.Sub(b.at).Seconds())*forgottenBytesPerSecond)
	b.at = now
}

// describeProblems joins what was wrong with a listing, for people, and says where that is so that the next one has to
// wait; nil where all is well.
func (b *relistBudget) describeProblems(troubles []string, now time.Time) error {
	if wait := b.waitTime(now); wait > 0 {
		until := now.Add(wait).UTC().Format(time.RFC3339)
		troubles = append(troubles, "its lists change so much that no change is looked at before "+until)
	}
	if len(troubles) == 0 {
		return nil
	}
	return errors.New(strings.Join(troubles, "; "))
}

// sameListing says whether a server listed the same again, whenever that was.
func sameListing(a, b *drawbridge.Listing) bool {
	for k := range listKinds {
		if !slices.EqualFunc(*listKinds[k].of(a), *listKinds[k].of(b), sameBytes) {
			return false
		}
	}
	return a.Server == b.Server && a.ConfigHash == b.ConfigHash && a.Era == b.Era && a.Instructions == b.Instructions &&
		maps.Equal(a.CacheHints, b.CacheHints) &&
		sameBytes(a.Info, b.Info) && sameBytes(a.Capabilities, b.Capabilities)
}

func sameBytes(a, b json.RawMessage) bool { return bytes.Equal(a, b) }

// changedBytes is how many bytes are in one listing only: of items, and of the instructions.
func changedBytes(before, after *drawbridge.Listing) (n int) {
	type item struct {
		kind int
		sum  uint64
	}
	seed := maphash.MakeSeed()
	gone := map[item]int{} // and how large they are
	for k := range listKinds {
		for _, raw := range *listKinds[k].of(before) {
			gone[item{k, maphash.Bytes(seed, raw)}] = len(raw)
		}
	}
	var stay []item
	for k := range listKinds {
		for _, raw := range *listKinds[k].of(after) {
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
