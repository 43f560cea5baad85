package secrets

import (
	"errors"
	"fmt"
	"strings"
)

// userSecretPrefix is the prefix of the names of UserSecrets in the vault.
const userSecretPrefix = "value/"

// UserSecrets are the secrets that a person stores in a vault under names of their choice, and refers to in the
// configuration.
type UserSecrets struct{ vault *Vault }

// UserSecrets returns the person's part of the vault.
func (v *Vault) UserSecrets() UserSecrets { return UserSecrets{v} }

// Get returns the value of a name, as Vault.Get does. If the vault has none, it looks in the keychain itself, under the
// service "drawbridge": a person may have put it there. The error does not repeat the name.
func (s UserSecrets) Get(name string) ([]byte, error) {
	value, err := s.vault.getSecret(userSecretPrefix + name)
	if !errors.Is(err, ErrNotFound) {
		return value, err
	}
	if s.vault.keychain == nil || checkName(name) != nil || strings.HasPrefix(name, keychainAccount("")) {
		return nil, err
	}
	text, away := s.vault.keychain.get(name)
	switch {
	case errors.Is(away, ErrNotFound):
		return nil, err
	case away != nil:
		return nil, fmt.Errorf("%w; %w", err, away)
	}
	return []byte(text), nil
}

// Put stores a value, as Vault.Put does.
func (s UserSecrets) Put(name string, value []byte) error {
	return s.vault.Put(userSecretPrefix+name, value)
}

// Delete removes a value, as Vault.Delete does. A value that the person put into the keychain directly stays there.
func (s UserSecrets) Delete(name string) error { return s.vault.Delete(userSecretPrefix + name) }

// List returns the person's entries of the vault by the person's names, as Vault.List does.
func (s UserSecrets) List() ([]SecretInfo, error) {
	all, err := s.vault.List()
	var values []SecretInfo
	for _, e := range all {
		if name, ok := strings.CutPrefix(e.Name, userSecretPrefix); ok {
			e.Name = name
			values = append(values, e)
		}
	}
	return values, err
}
