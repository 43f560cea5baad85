package cli

import (
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

// openVault returns the vault. The first call opens it. Several goroutines may call it.
func (a *app) openVault() (*secrets.Vault, error) {
	a.vaultMu.Lock()
	defer a.vaultMu.Unlock()
	var err error
	if a.cachedVault == nil {
		a.cachedVault, err = gateway.OpenVault(a.gatewayConfig())
	}
	return a.cachedVault, err
}

// vaultSecrets returns the store of the person's secrets in the vault.
func (a *app) vaultSecrets() admin.VaultSecrets { return admin.VaultSecrets{OpenVault: a.openVault} }

// printSecretLocation prints how the vault protects secrets, unless its key is in the keychain of the system.
func (a *app) printSecretLocation() {
	if p, err := a.adminService().SecretProtection(); err == nil && !p.InKeychain {
		safetext.Fprintln(a.Err, p.Text)
	}
}
