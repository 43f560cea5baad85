package admin

import "github.com/drawbridge-mcp/drawbridge/internal/secrets"

// VaultSecrets reads and writes the person's secrets in a vault, and implements SecretStore. It opens the vault only
// when a method is called.
type VaultSecrets struct {
	// OpenVault returns the vault. Each method calls it.
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

// Get returns the value of a secret in the vault, or else in the operating system's keychain. For an unknown name the
// error is secrets.ErrNotFound.
func (k VaultSecrets) Get(name string) ([]byte, error) {
	values, err := k.openValues()
	if err != nil {
		return nil, err
	}
	return values.Get(name)
}

// Put stores a secret, and replaces an earlier secret with the same name.
func (k VaultSecrets) Put(name string, value []byte) error {
	values, err := k.openValues()
	if err != nil {
		return err
	}
	return values.Put(name, value)
}

// Delete removes a secret.
func (k VaultSecrets) Delete(name string) error {
	values, err := k.openValues()
	if err != nil {
		return err
	}
	return values.Delete(name)
}

// Lookup returns the value of a secret, or false if it cannot be read.
func (k VaultSecrets) Lookup(name string) (string, bool) {
	value, err := k.Get(name)
	return string(value), err == nil
}
