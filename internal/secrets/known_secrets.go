package secrets

import (
	"slices"
	"sync"
	"sync/atomic"
)

const (
	// minKnownLength is the length from which a value is redacted. A shorter one may be a common word.
	minKnownLength = 6
	// maxKnownSecrets is the largest number of values.
	maxKnownSecrets = 1000
)

// KnownSecrets are values known to be secret, for redaction of written texts. They are kept in memory only. The zero
// value is empty; its methods are safe for concurrent use.
type KnownSecrets struct {
	mu  sync.Mutex // held while the values change
	all atomic.Pointer[[]string]
}

// Note adds values. It ignores values shorter than minKnownLength. If there are more than maxKnownSecrets, it forgets
// the oldest.
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

// All returns the values. They are shared: the slice must not be changed.
func (k *KnownSecrets) All() []string {
	if all := k.all.Load(); all != nil {
		return *all
	}
	return nil
}

// A secretNoter is a SecretGetter that also records the values of all other references.
type secretNoter interface{ Note(values ...string) }

// Known returns the values known to be secret to all users of this vault: resolved references, and values added with
// Note.
func (v *Vault) Known() *KnownSecrets { return &v.known }

// Note adds values to the vault's Known. A Resolver whose Keychain is a UserSecrets notes the values it finds.
func (s UserSecrets) Note(values ...string) { s.vault.known.Note(values...) }

var _ secretNoter = UserSecrets{}
