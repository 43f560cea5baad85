package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/login"
	"github.com/drawbridge-mcp/drawbridge/roster"
)

// login is where people sign in at servers.
func (a *app) login() login.Desk {
	return login.Desk{
		In: a.In, Out: a.Out, Err: a.Err, Env: a.Env, Environ: a.Environ, Roster: a.roster(), Vault: a.vault, Failed: errQuiet,
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
	fmt.Fprintln(a.Err, roster.Launching)
	return a.login().Auth(ctx, id)
}

// agreesTo asks a question that an empty answer says yes to.
func (a *app) agreesTo(ctx context.Context, question string) bool {
	yes, err := a.confirm(ctx, question, true)
	return err == nil && yes
}

// credentials says how we stand with the servers of these rows that one signs in at, and with which of them a credential has
// to do: whose row says how to sign in, or at which somebody did, or was to.
func (a *app) credentials(rows []config.Server) (map[drawbridge.ServerID]drawbridge.Credential, error) {
	p, err := gateway.OpenPorter(a.config(), rows)
	if err != nil {
		return nil, err
	}
	all := map[drawbridge.ServerID]drawbridge.Credential{}
	for _, row := range rows {
		access, err := p.Access(row.ID)
		if err != nil {
			continue // nobody signs in there
		}
		c, err := access.State()
		if err != nil && c.Name != "" { // it is kept, and cannot be read
			c.Trouble, err = err.Error(), nil
		}
		if err == nil && (c.Signed || c.URL != "" || c.Trouble != "" || row.Auth != nil) {
			all[row.ID] = c
		}
	}
	return all, nil
}

// A listed server is how a server is, with how we stand with it.
type listed struct {
	drawbridge.Status
	Credential *drawbridge.Credential `json:"credential,omitempty"`
	// open says that who prepared the sign-in waits still for the browser to come back.
	open bool
}

// withCredentials adds to how servers are what is kept of their sign-ins. A living process knows best what its server wants;
// what a process wanted that is gone may be there by now.
func withCredentials(rows []drawbridge.Status, all map[drawbridge.ServerID]drawbridge.Credential) []listed {
	out := make([]listed, len(rows))
	for i, row := range rows {
		l := listed{Status: row, open: row.SignIn != ""}
		c, ok := all[row.Server]
		if c.Signed && row.Phase != drawbridge.NeedsSignIn {
			c.URL = "" // nobody needs it any more
		}
		dormant := row.Phase == drawbridge.Idle || row.Phase == drawbridge.Faulted || row.Phase == drawbridge.NeedsSignIn
		switch {
		case !ok:
		case l.open || !dormant:
			l.Credential = &c
		case c.Signed && row.Phase == drawbridge.NeedsSignIn:
			l.Credential, l.Phase = &c, drawbridge.Idle
		case !c.Signed && (c.URL != "" || c.Trouble != ""):
			l.Credential, l.Phase, l.SignIn = &c, drawbridge.NeedsSignIn, c.URL
		default:
			l.Credential = &c
		}
		out[i] = l
	}
	return out
}

// printSignIn says what to do about a server that wants to know who asks, or until when it knows.
func printSignIn(w io.Writer, l listed) {
	c := l.Credential
	if l.Phase != drawbridge.NeedsSignIn {
		if c != nil && (c.Signed || c.Trouble != "") {
			fmt.Fprintf(w, "  %s\n", login.Standing(*c))
		}
		return
	}
	why := ""
	if c != nil && c.Trouble != "" {
		why = " (" + c.Trouble + ")"
	}
	fmt.Fprintf(w, "  it needs a sign-in%s: drawbridge mcp auth %s\n", why, l.Server)
	printWay(w, l.Server, l.SignIn, l.open)
}

// printWay adds the address that a sign-in which was prepared goes on at.
func printWay(w io.Writer, id drawbridge.ServerID, address string, open bool) {
	switch {
	case address == "":
	case open:
		fmt.Fprintf(w, "  or open %s\n", address)
	default:
		fmt.Fprintf(w, "  or open %s\n  and give the address that the browser ends at to drawbridge mcp auth %s --code -\n", address, id)
	}
}
