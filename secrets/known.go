package secrets

import (
	"slices"
	"sync"
	"sync/atomic"
)

const (
	// A shorter value may be a word of everyday texts.
	minKnown = 6
	// maxKnown is how many values are known at a time.
	maxKnown = 1000
)

// Known are values that are secrets, for those who write texts down that may repeat one. They are in memory only. The zero value
// has none; its methods may be called from several goroutines.
type Known struct {
	mu  sync.Mutex // held by who changes
	all atomic.Pointer[[]string]
}

// Note adds values. Those that are too short to be told from words are not; of too many the oldest are forgotten.
func (k *Known) Note(values ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.All()
	all := before
	for _, value := range values {
		if len(value) >= minKnown && !slices.Contains(all, value) {
			all = append(all[:len(all):len(all)], value)
		}
	}
	if len(all) == len(before) {
		return
	}
	all = all[max(0, len(all)-maxKnown):]
	k.all.Store(&all)
}

// All gives the values. They are shared: the slice may not be changed.
func (k *Known) All() []string {
	if all := k.all.Load(); all != nil {
		return *all
	}
	return nil
}

// A noter is a Keeper that wants to know what other references stood for.
type noter interface{ Note(values ...string) }

// Known gives the values that are known to be secrets to those who share this vault: what references stood for, and what else
// was noted.
func (v *Vault) Known() *Known { return &v.known }

// Note adds values to the vault's Known. A Resolver whose Keeper these are notes what it finds.
func (s Values) Note(values ...string) { s.vault.known.Note(values...) }

var _ noter = Values{}
