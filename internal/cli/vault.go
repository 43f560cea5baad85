package cli

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/secret"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/roster"
	"github.com/drawbridge-mcp/drawbridge/secrets"
	"github.com/spf13/cobra"
)

func (a *app) secretCommand() *cobra.Command {
	move := func(ctx context.Context, id drawbridge.ServerID, asJSON bool) error {
		var c roster.Change
		err := a.clerk(gateway.Act{Command: "secret move", Server: id}, func() (err error) {
			c, err = a.roster().MoveSecrets(ctx, id)
			return err
		})
		if err != nil {
			return err
		}
		return a.printChange(c, asJSON)
	}
	return group(secret.Desk{In: a.In, Out: a.Out, Err: a.Err, Vault: a.vault, Configuration: a.configuration, Move: move, Clerk: a.clerk}.Command())
}

// vault opens what keeps secrets, once.
func (a *app) vault() (*secrets.Vault, error) {
	var err error
	if a.opened == nil {
		a.opened, err = gateway.OpenVault(a.config())
	}
	return a.opened, err
}

// keeper has what the person keeps in the vault.
func (a *app) keeper() secret.Keeper { return secret.Keeper{Vault: a.vault} }

// sayWhere says where secrets are, where that is not the keychain.
func (a *app) sayWhere() {
	if v, err := a.vault(); err == nil && v.Place() != secrets.InKeychain {
		safetext.Fprintln(a.Err, v.Where())
	}
}
