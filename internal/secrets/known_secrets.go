package secrets

import (
	"slices"
	"sync"
	"sync/atomic"
)

const (
	// minKnownLength is the minimum length of a value that is redacted, in bytes. A shorter value may be a common word.
	minKnownLength = 6
	// maxKnownSecrets is the maximum number of stored values.
	maxKnownSecrets = 1000
)

// KnownSecrets stores values that are known to be secret, so that they can be redacted in texts. The values are in
// memory only. The zero value is empty and ready to use, and is safe for concurrent use.
type KnownSecrets struct {
	mu  sync.Mutex // held while all is replaced
	all atomic.Pointer[[]string]
}

// Note adds values. It ignores values shorter than minKnownLength. If there are more than maxKnownSecrets values, it
// removes the oldest.
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

// All returns the values. The caller must not modify the slice, which is shared.
func (k *KnownSecrets) All() []string {
	if all := k.all.Load(); all != nil {
		return *all
	}
	return nil
}

// A secretNoter stores values for redaction. If the Keychain of a Resolver implements this interface, the Resolver
// calls Note with each value that it resolves.
type secretNoter interface{ Note(values ...string) }

// Known returns the values that are known to be secret: the values of resolved references, and the values added with
// Note. There is one such set for each vault.
func (v *Vault) Known() *KnownSecrets { return &v.known }

// Note adds values to Vault.Known. A Resolver whose Keychain is a UserSecrets calls Note with each value that it
// resolves.
func (s UserSecrets) Note(values ...string) { s.vault.known.Note(values...) }

var _ secretNoter = UserSecrets{}
