package gateway

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
)

// KeychainVariable is the name of an environment variable; its value "off" turns off the keychain of the operating
// system.
const KeychainVariable = "DRAWBRIDGE_KEYCHAIN"

// vaultDir returns the directory of the vault: "vault" beside the file of the store, see StoreLocation. If the store is
// not a file, it is "vault" beside the default file of the store. The error is as for StoreLocation.
func vaultDir(flag string, s config.Settings, lookup func(string) (string, bool)) (string, error) {
	location, err := StoreLocation(flag, s, lookup)
	if err == nil && !isFileStore(location) {
		location, err = StoreLocation("", config.Settings{}, lookup)
	}
	if err == nil {
		location, err = filepath.Abs(location)
	}
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(location), "vault"), nil
}

// isFileStore reports whether the location of a store is the path of a file.
func isFileStore(location string) bool {
	return location != MemoryStore && !strings.Contains(location, "://")
}

// OpenVault opens the vault of a gateway with this configuration, without the other parts of the gateway. The first
// write creates the vault's directory. The error is a *drawbridge.Fault, as for Open.
func OpenVault(c Config) (*secrets.Vault, error) {
	c = c.withLogger()
	s, err := loadSettings(c)
	if err != nil {
		return nil, err
	}
	return openVault(c, s)
}

func openVault(c Config, s config.Settings) (*secrets.Vault, error) {
	dir, err := vaultDir(c.Store, s, c.LookupEnv)
	if location, here := StoreLocation(c.Store, s, c.LookupEnv); err != nil && here == nil && !isFileStore(location) {
		return secrets.UnavailableVault(errors.New("the home directory is unknown")), nil
	}
	if err != nil {
		return nil, err
	}
	lookup := c.LookupEnv
	if lookup == nil {
		lookup = os.LookupEnv
	}
	o := secrets.VaultOptions{Logger: c.Logger}
	said, set := lookup(KeychainVariable)
	if !set {
		said = ""
	}
	switch said {
	case "", "on":
	case "off":
		o.NoKeychain = true
	default:
		return nil, &drawbridge.Fault{
			Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: "read the variable " + KeychainVariable,
			Err: errors.New(`want "on" or "off"`),
		}
	}
	place, err := placeOfStore(c.Store, s, c.LookupEnv)
	if err == nil {
		err = place.recoverRestore()
	}
	if err != nil {
		return nil, err
	}
	v, err := secrets.OpenVault(dir, o)
	if err != nil {
		return nil, storeFault("open the vault", err)
	}
	return v, nil
}

// Vault returns the vault that all gateways on g share.
func (g *Shared) Vault() *secrets.Vault { return g.vault }
