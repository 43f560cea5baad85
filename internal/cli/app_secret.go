package cli

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
	"github.com/spf13/cobra"
)

func (a *app) secretCommand() *cobra.Command {
	move := func(ctx context.Context, id drawbridge.ServerID, asJSON bool) error {
		var c admin.Change
		err := a.recordAction(gateway.AdminAction{Command: "secret move", Server: id}, func() (err error) {
			c, err = a.adminService().MoveSecrets(ctx, id)
			return err
		})
		if err != nil {
			return err
		}
		return a.printChange(c, asJSON)
	}
	return asCommandGroup(secretCommands{In: a.In, Out: a.Out, Err: a.Err, OpenVault: a.openVault,
		ReadConfig: a.readConfig, MoveSecrets: move, AdminRecorder: a.recordAction}.command())
}

// openVault opens the vault at its first call and returns it.
func (a *app) openVault() (*secrets.Vault, error) {
	var err error
	if a.cachedVault == nil {
		a.cachedVault, err = gateway.OpenVault(a.gatewayConfig())
	}
	return a.cachedVault, err
}

// vaultSecrets returns the store of the person's secrets in the vault.
func (a *app) vaultSecrets() vaultSecretStore { return vaultSecretStore{OpenVault: a.openVault} }

// printSecretLocation prints where secrets are stored, unless that is the keychain.
func (a *app) printSecretLocation() {
	if v, err := a.openVault(); err == nil && v.KeyLocation() != secrets.InKeychain {
		safetext.Fprintln(a.Err, v.DescribeProtection())
	}
}
