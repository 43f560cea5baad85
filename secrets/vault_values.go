package secrets

import (
	"errors"
	"fmt"
	"strings"
)

// ofValues is what the names of Values begin with in the vault.
const ofValues = "value/"

// Values are the secrets of a vault that a person keeps there by a name of their own, and refers to in the configuration.
type Values struct{ vault *Vault }

// Values gives the part of the vault that is the person's.
func (v *Vault) Values() Values { return Values{v} }

// Get gives the value of a name, as Vault.Get does. Where the vault has none it is looked for in the keychain itself, under the
// service "drawbridge": a person may have put it there. The error does not repeat the name.
func (s Values) Get(name string) ([]byte, error) {
	value, err := s.vault.get(ofValues + name)
	if !errors.Is(err, ErrNone) {
		return value, err
	}
	if s.vault.keychain == nil || checkName(name) != nil || strings.HasPrefix(name, account("")) {
		return nil, err
	}
	text, away := s.vault.keychain.get(name)
	switch {
	case errors.Is(away, ErrNone):
		return nil, err
	case away != nil:
		return nil, fmt.Errorf("%w; %w", err, away)
	}
	return []byte(text), nil
}

// Put keeps a value, as Vault.Put does.
func (s Values) Put(name string, value []byte) error { return s.vault.Put(ofValues+name, value) }

// Delete takes a value away, as Vault.Delete does. What a person put into the keychain themselves stays there.
func (s Values) Delete(name string) error { return s.vault.Delete(ofValues + name) }

// List gives the entries of the vault that are values, by the person's names, as Vault.List does.
func (s Values) List() ([]Entry, error) {
	all, err := s.vault.List()
	var values []Entry
	for _, e := range all {
		if name, ok := strings.CutPrefix(e.Name, ofValues); ok {
			e.Name = name
			values = append(values, e)
		}
	}
	return values, err
}
