package cli

import (
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
)

// A vaultSecretStore opens the vault at the first request and holds the person's secrets.
type vaultSecretStore struct {
	OpenVault func() (*secrets.Vault, error)
}

var _ admin.SecretStore = vaultSecretStore{}

func (k vaultSecretStore) openValues() (secrets.UserSecrets, error) {
	v, err := k.OpenVault()
	if err != nil {
		return secrets.UserSecrets{}, err
	}
	return v.UserSecrets(), nil
}

// Get returns a value, as secrets.UserSecrets does.
func (k vaultSecretStore) Get(name string) ([]byte, error) {
	values, err := k.openValues()
	if err != nil {
		return nil, err
	}
	return values.Get(name)
}

// Put stores a value.
func (k vaultSecretStore) Put(name string, value []byte) error {
	values, err := k.openValues()
	if err != nil {
		return err
	}
	return values.Put(name, value)
}

// Delete removes a value.
func (k vaultSecretStore) Delete(name string) error {
	values, err := k.openValues()
	if err != nil {
		return err
	}
	return values.Delete(name)
}

// Lookup is Get without an error: it returns false for a value that cannot be read.
func (k vaultSecretStore) Lookup(name string) (string, bool) {
	value, err := k.Get(name)
	return string(value), err == nil
}
