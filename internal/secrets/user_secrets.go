package secrets

import (
	"errors"
	"fmt"
	"strings"
)

// userSecretPrefix is the prefix of the vault's names for UserSecrets.
const userSecretPrefix = "value/"

// UserSecrets are the secrets in a vault that a person stored and named. The configuration refers to them by these
// names.
type UserSecrets struct{ vault *Vault }

// UserSecrets returns the secrets in the vault that a person stored.
func (v *Vault) UserSecrets() UserSecrets { return UserSecrets{v} }

// Get returns the value of a name, like Vault.Get. If the vault has no such value, Get reads the operating system's
// keychain, unless the keychain is disabled. A person may have stored the value there directly, under the service
// "drawbridge". The error does not contain the name.
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

// Put stores a value, like Vault.Put.
func (s UserSecrets) Put(name string, value []byte) error {
	return s.vault.Put(userSecretPrefix+name, value)
}

// Delete removes a value, like Vault.Delete. It does not remove a value that a person stored directly in the keychain.
func (s UserSecrets) Delete(name string) error { return s.vault.Delete(userSecretPrefix + name) }

// List returns descriptions of the secrets that a person stored, like Vault.List. SecretInfo.Name is the name that the
// person chose.
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
