package admin

import "github.com/drawbridge-mcp/drawbridge/internal/secrets"

// VaultSecrets are the person's secrets in a vault. The vault is opened when it is needed.
type VaultSecrets struct {
	// OpenVault returns the vault. It is called for each request.
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

// Lookup returns a value, or false if the value cannot be read.
func (k VaultSecrets) Lookup(name string) (string, bool) {
	value, err := k.Get(name)
	return string(value), err == nil
}
