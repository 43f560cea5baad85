package cli

import (
	"context"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/login"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/roster"
)

// login is where people sign in at servers.
func (a *app) login() login.Desk {
	return login.Desk{
		In: a.In, Out: a.Out, Err: a.Err, Env: a.Env, Environ: a.Environ, Roster: a.roster, Vault: a.vault, Failed: errQuiet,
		Open:   a.signing,
		Porter: func(roll roster.Roll) (roster.Porter, error) { return gateway.OpenPorter(a.config(), roll.Servers) },
	}
}

// signing runs the whole system, which starts what is asked for only.
func (a *app) signing(ctx context.Context, work func(context.Context, roster.Signer) error) error {
	g, err := a.oneOff(ctx)
	if err != nil {
		return err
	}
	defer g.Close()
	return a.running(ctx, g, func(ctx context.Context) error { return work(ctx, g) })
}

// offer asks at a terminal whether to sign in at a server that wants it.
func (a *app) offer(ctx context.Context, id drawbridge.ServerID) error {
	if !a.agreesTo(ctx, fmt.Sprintf("Sign in at %q now? (yes or no) [yes]: ", id)) {
		return nil // what was printed says how
	}
	safetext.Fprintln(a.Err, roster.Launching)
	return a.login().Auth(ctx, id)
}

// agreesTo asks a question that an empty answer says yes to.
func (a *app) agreesTo(ctx context.Context, question string) bool {
	yes, err := a.confirm(ctx, question, true)
	return err == nil && yes
}

// credentials says how we stand with the servers of these rows.
func (a *app) credentials(rows []config.Server) (login.Standings, error) {
	p, err := gateway.OpenPorter(a.config(), rows)
	if err != nil {
		return nil, err
	}
	return login.StandingsOf(p, rows), nil
}
