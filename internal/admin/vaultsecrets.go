package admin

import "github.com/drawbridge-mcp/drawbridge/internal/secrets"

// VaultSecrets are the person's secrets in a vault that is opened by the first request.
type VaultSecrets struct {
	// OpenVault returns the vault; each request calls it.
	OpenVault func() (*secrets.Vault, error)
}

var _ SecretStore = VaultSecrets{}

func (k VaultSecrets) openValues() (secrets.UserSecrets, error) {
	v, err := k.OpenVault()
	if err != nil {
		return secrets.UserSecrets{}, err
	}
	return v.UserSecrets(), nil
}

// Get returns a value, as secrets.UserSecrets does.
func (k VaultSecrets) Get(name string) ([]byte, error) {
	values, err := k.openValues()
	if err != nil {
		return nil, err
	}
	return values.Get(name)
}

// Put stores a value.
func (k VaultSecrets) Put(name string, value []byte) error {
	values, err := k.openValues()
	if err != nil {
		return err
	}
	return values.Put(name, value)
}

// Delete removes a value.
func (k VaultSecrets) Delete(name string) error {
	values, err := k.openValues()
	if err != nil {
		return err
	}
	return values.Delete(name)
}

// Lookup is Get without an error: it returns false for a value that cannot be read.
func (k VaultSecrets) Lookup(name string) (string, bool) {
	value, err := k.Get(name)
	return string(value), err == nil
}
