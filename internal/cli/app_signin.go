package cli

import (
	"context"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// newSignInCommands returns the commands that sign in and out at servers.
func (a *app) newSignInCommands() signInCommands {
	return signInCommands{
		In: a.In, Out: a.Out, Err: a.Err, Env: a.Env, Environ: a.Environ, Admin: a.adminService, Vault: a.openVault,
		ErrAlreadyPrinted: errAlreadyPrinted,
		WithSignInServers: a.withSignInGateway,
		SignOutProvider: func(ctx context.Context, roll admin.ServerList) (admin.SignInProvider, error) {
			vault, err := a.openVault()
			if err != nil {
				return nil, err
			}
			return gateway.OpenSignInManager(ctx, a.gatewayConfig(), vault, roll.Servers)
		},
	}
}

// withSignInGateway opens a gateway and calls work while it runs. The gateway starts a server only when work needs it.
func (a *app) withSignInGateway(ctx context.Context, work func(context.Context, admin.SignInServers) error) error {
	g, err := a.openOnDemandGateway(ctx)
	if err != nil {
		return err
	}
	defer g.Close()
	return a.withRunningGateway(ctx, g, func(ctx context.Context) error { return work(ctx, g) })
}

// offerSignIn asks at a terminal whether to sign in at a server that requires it, and signs in if the person agrees.
func (a *app) offerSignIn(ctx context.Context, id drawbridge.ServerID) error {
	if !a.confirmDefaultYes(ctx, fmt.Sprintf("Sign in at %q now?", id)) {
		return nil // the text that was printed names the command
	}
	return a.startSignIn(ctx, id)
}

// startSignIn signs in at a server whose test showed that it requires a sign-in.
func (a *app) startSignIn(ctx context.Context, id drawbridge.ServerID) error {
	safetext.Fprintln(a.Err, admin.SignInLaunchingText)
	return a.newSignInCommands().signInDefault(ctx, id)
}

// confirmDefaultYes asks a yes-or-no question. An empty line means yes. It returns false if there is no answer, for
// example because there is no person to ask.
func (a *app) confirmDefaultYes(ctx context.Context, question string) bool {
	yes, err := a.confirm(ctx, question, true)
	return err == nil && yes
}
