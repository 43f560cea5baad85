package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
)

// secretNamePattern matches valid names of secrets. It does not allow characters such as "}", so that the end of a
// reference like "${keychain:NAME}" is unambiguous.
var secretNamePattern = lazyregexp.New(`^[A-Za-z0-9._@/-]+$`)

// maxSecretName is the maximum length of a secret's name, in bytes.
const maxSecretName = 128

// CheckSecretName returns a UserError for an invalid name of a secret.
func CheckSecretName(name string) error {
	if len(name) > maxSecretName || !secretNamePattern().MatchString(name) {
		return UserError("the name of a secret has letters, digits and . _ @ / - only, and at most 128 of them")
	}
	return nil
}

// A SecretProtection describes how the vault protects secrets.
type SecretProtection struct {
	// InKeychain reports whether the key that encrypts the vault is in the keychain of the operating system.
	InKeychain bool
	// Text is a sentence for the person that describes how the key is protected.
	Text string
}

// SecretProtection returns how the vault protects secrets. The error is that of Options.OpenVault.
func (r *Service) SecretProtection() (SecretProtection, error) {
	v, err := r.openVault()
	if err != nil {
		return SecretProtection{}, err
	}
	return protectionOf(v), nil
}

func protectionOf(v *secrets.Vault) SecretProtection {
	return SecretProtection{v.KeyLocation() == secrets.InKeychain, v.DescribeProtection()}
}

func (r *Service) openVault() (*secrets.Vault, error) {
	if r.o.OpenVault == nil {
		return nil, errNoSecretStore
	}
	return r.o.OpenVault()
}

// StoreSecret stores a secret in the vault, and replaces an earlier secret with the same name. It returns how the vault
// protects the secret. The error is a UserError for an invalid name or an empty value.
func (r *Service) StoreSecret(name string, value []byte) (SecretProtection, error) {
	v, err := r.openVault()
	if err != nil {
		return SecretProtection{}, err
	}
	if err := CheckSecretName(name); err != nil {
		return SecretProtection{}, err
	}
	if len(value) == 0 {
		return SecretProtection{}, UserError("nothing was kept: the value is empty")
	}
	if err := r.o.AdminRecorder.Run(gateway.AdminAction{Command: "secret set", Subject: name},
		func() error { return v.UserSecrets().Put(name, value) }); err != nil {
		return SecretProtection{}, err
	}
	return protectionOf(v), nil
}

// A SecretList is a list of the stored secrets with their names, but without their values.
type SecretList struct {
	// Where is a sentence for the person that describes how the secrets are protected.
	Where   string               `json:"where"`
	Secrets []secrets.SecretInfo `json:"secrets"`
	// Damage is set if some of the secrets cannot be listed; Secrets then has only the others.
	Damage error `json:"-"`
}

// Secrets returns the list of the secrets that the person has stored. The error is that of Options.OpenVault.
func (r *Service) Secrets() (SecretList, error) {
	v, err := r.openVault()
	if err != nil {
		return SecretList{}, err
	}
	all, damage := v.UserSecrets().List()
	return SecretList{v.DescribeProtection(), append([]secrets.SecretInfo{}, all...), damage}, nil
}

// A SecretUser is a server whose configuration row contains a reference to a secret.
type SecretUser struct {
	Server drawbridge.ServerID
	// Origin is the file and line of the row.
	Origin string
}

// RemoveSecret removes a secret from the vault, and returns the servers whose configuration still refers to it. If the
// name exists only in the operating system's keychain, where the person has put it by hand, RemoveSecret returns an
// error and removes nothing.
func (r *Service) RemoveSecret(ctx context.Context, name string) (users []SecretUser, err error) {
	v, err := r.openVault()
	if err != nil {
		return nil, err
	}
	err = r.o.AdminRecorder.Run(gateway.AdminAction{Command: "secret remove", Subject: name},
		func() error { return v.UserSecrets().Delete(name) })
	_, unkept := v.UserSecrets().Get(name)
	switch {
	case errors.Is(err, secrets.ErrNotFound) && unkept == nil:
		return nil, fmt.Errorf("%q was put into the keychain by hand, under the service drawbridge: remove it there",
			name)
	case errors.Is(err, secrets.ErrNotFound):
		return nil, fmt.Errorf("secret %q not found (drawbridge secret list)", name)
	case err != nil:
		return nil, err
	case unkept == nil:
		return nil, nil // the keychain has another value with this name
	}
	roll, err := r.ReadServers(ctx)
	if err != nil {
		return nil, nil // the value is removed
	}
	for _, row := range roll.Servers {
		if strings.Contains(string(row.Raw), "${keychain:"+name+"}") {
			users = append(users, SecretUser{row.ID, row.Origin.String()})
		}
	}
	return users, nil
}
