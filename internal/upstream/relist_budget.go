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
	// freeChangeBytes is how many bytes of a server's listings may change before its next listing is delayed. The count
	// of changed bytes decreases by forgottenBytesPerSecond in each second.
	freeChangeBytes         = 16 << 20
	forgottenBytesPerSecond = 1 << 10
	// wholeListingDivisor determines how much each change counts in addition to the changed bytes: the size of the
	// listing divided by wholeListingDivisor. The whole listing is read and saved even if only its order changed.
	wholeListingDivisor = 64
	// resaveInterval is the minimum time between two saves of an unchanged listing, since each save writes the whole
	// listing.
	resaveInterval = time.Minute
)

// A relistBudget determines when a server may be listed again. It counts the bytes that changed between listings. If
// the count is too high, the next listing must wait until the count has decreased. Every change is stored permanently,
// so a server that changed all its lists every few seconds would fill the disk. Ordinary servers never wait. The zero
// value is an unused budget. The methods must be called from one goroutine.
type relistBudget struct {
	// spent is the number of changed bytes at the time at, after the decrease over time.
	spent float64
	at    time.Time
	// saved is when a listing was last saved.
	saved time.Time
}

// recordChange counts the bytes that are in only one of the two listings. It counts nothing for the first listing. It
// reports whether the new listing must be saved: it changed, or was last saved more than resaveInterval ago. The caller
// must save the listing in that case.
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

// waitTime returns how long the server must not be listed again; 0 if it may be listed now.
func (b *relistBudget) waitTime(now time.Time) time.Duration {
	b.decaySpent(now)
	return time.Duration(max(0, b.spent-freeChangeBytes) / forgottenBytesPerSecond * float64(time.Second))
}

func (b *relistBudget) decaySpent(now time.Time) {
	b.spent = max(0, b.spent-max(0, now.Sub(b.at).Seconds())*forgottenBytesPerSecond)
	b.at = now
}

// describeProblems returns an error that joins the problems of a listing. If the next listing must wait, it adds the
// time of that listing. It returns nil if there are no problems.
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

// changedBytes returns the size in bytes of the items and instructions that are in only one of the two listings.
func changedBytes(before, after *drawbridge.Listing) (n int) {
	type item struct {
		kind int
		sum  uint64
	}
	seed := maphash.MakeSeed()
	gone := map[item]int{} // the value is the size
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
