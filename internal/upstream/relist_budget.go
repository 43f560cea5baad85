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
	// freeChangeBytes is how many bytes of a listing may change at any rate; forgottenBytesPerSecond is how many are
	// forgiven per second.
	freeChangeBytes         = 16 << 20
	forgottenBytesPerSecond = 1 << 10
	// wholeListingDivisor is the fraction of the whole listing that counts with each change: it is read and saved whole
	// even if only its order changed.
	wholeListingDivisor = 64
	// resaveInterval is how long an unchanged listing is not saved again: it is written whole each time.
	resaveInterval = time.Minute
)

// A relistBudget decides when a server may be listed again. Changes are recorded forever, so a server that changed all
// its lists every few seconds would fill the disk. Ordinary servers never wait. The zero value is a full budget. It is
// for one goroutine.
type relistBudget struct {
	// spent is how many changed bytes were not forgiven yet, at the time at.
	spent float64
	at    time.Time
	// saved is when a listing was last saved.
	saved time.Time
}

// recordChange counts what is in only one of the listings, except for the first listing of all. It reports whether the
// new listing is to be saved, and assumes that it then is: it changed, or was not saved for resaveInterval.
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

// listingSize returns the size of a listing in bytes.
func listingSize(l *drawbridge.Listing) int {
	n := len(l.Instructions)
	for k := range listKinds {
		for _, raw := range *listKinds[k].of(l) {
			n += len(raw)
		}
	}
	return n
}

// waitTime returns how long the server must not be listed.
func (b *relistBudget) waitTime(now time.Time) time.Duration {
	b.decaySpent(now)
	return time.Duration(max(0, b.spent-freeChangeBytes) / forgottenBytesPerSecond * float64(time.Second))
}

func (b *relistBudget) decaySpent(now time.Time) {
	b.spent = max(0, b.spent-max(0, now.Sub(b.at).Seconds())*forgottenBytesPerSecond)
	b.at = now
}

// describeProblems joins the problems of a listing, for people, and adds when the next one is allowed; nil if there are
// none.
func (b *relistBudget) describeProblems(troubles []string, now time.Time) error {
	if wait := b.waitTime(now); wait > 0 {
		until := now.Add(wait).UTC().Format(time.RFC3339)
		troubles = append(troubles, "its lists change too much: the next refresh is not before "+until)
	}
	if len(troubles) == 0 {
		return nil
	}
	return errors.New(strings.Join(troubles, "; "))
}

// sameListing reports whether two listings have the same content; ListedAt is ignored.
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

// changedBytes returns how many bytes of items and instructions are in one listing only.
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
