package cli

import (
	"sync"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
	"github.com/spf13/cobra"
)

func (a *app) secretCommand() *cobra.Command {
	return asCommandGroup(secretCommands{In: a.In, Out: a.Out, Err: a.Err, Admin: a.adminService,
		PrintChange: a.printChange}.command())
}

// A vaultOpener keeps the vaults of stores after they were opened.
type vaultOpener struct {
	mu     sync.Mutex
	vaults map[string]*secrets.Vault // by --store
}

// vaultsOf returns the opener of a process: that of the session in which the command runs, or a new one.
func vaultsOf(p Process) *vaultOpener {
	if in, ok := p.In.(sessionInput); ok && in.talk.vault != nil {
		return in.talk.vault
	}
	return &vaultOpener{vaults: map[string]*secrets.Vault{}}
}

// openVault returns the vault. The first call opens it. Several goroutines may call it.
func (a *app) openVault() (*secrets.Vault, error) {
	a.vault.mu.Lock()
	defer a.vault.mu.Unlock()
	if v, ok := a.vault.vaults[a.storeLocation]; ok {
		return v, nil
	}
	v, err := gateway.OpenVault(a.gatewayConfig())
	if err == nil {
		a.vault.vaults[a.storeLocation] = v
	}
	return v, err
}

// vaultSecrets returns the store of the person's secrets in the vault.
func (a *app) vaultSecrets() admin.VaultSecrets { return admin.VaultSecrets{OpenVault: a.openVault} }

// printSecretLocation prints how the vault protects secrets, unless its key is in the keychain of the system.
func (a *app) printSecretLocation() {
	if p, err := a.adminService().SecretProtection(); err == nil && !p.InKeychain {
		safetext.Fprintln(a.Err, p.Text)
	}
}
