package secrets

import (
	"slices"
	"sync"
	"sync/atomic"
)

const (
	// A shorter value may be a word of everyday texts.
	minKnownLength = 6
	// maxKnownSecrets is how many values are known at a time.
	maxKnownSecrets = 1000
)

// KnownSecrets are values that are secrets, for those who write texts down that may repeat one. They are in memory
// only. The zero value has none; its methods may be called from several goroutines.
type KnownSecrets struct {
	mu  sync.Mutex // held by who changes
	all atomic.Pointer[[]string]
}

// Note adds values. Those that are too short to be told from words are not; of too many the oldest are forgotten.
func (k *KnownSecrets) Note(values ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.All()
	all := before
	for _, value := range values {
		if len(value) >= minKnownLength && !slices.Contains(all, value) {
			all = append(all[:len(all):len(all)], value)
		}
	}
	if len(all) == len(before) {
		return
	}
	all = all[max(0, len(all)-maxKnownSecrets):]
	k.all.Store(&all)
}

// All gives the values. They are shared: the slice may not be changed.
func (k *KnownSecrets) All() []string {
	if all := k.all.Load(); all != nil {
		return *all
	}
	return nil
}

// A secretNoter is a Keeper that wants to know what other references stood for.
type secretNoter interface{ Note(values ...string) }

// Known gives the values that are known to be secrets to those who share this vault: what references stood for, and
// what else was noted.
func (v *Vault) Known() *KnownSecrets { return &v.known }

// Note adds values to the vault's Known. A Resolver whose Keeper these are notes what it finds.
func (s UserSecrets) Note(values ...string) { s.vault.known.Note(values...) }

var _ secretNoter = UserSecrets{}
