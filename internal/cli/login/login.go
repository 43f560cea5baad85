// Package login is the commands that sign a person in at servers, and out.
//
// It promises that a browser opens only where somebody asked to sign in, that it gets an http or https address as one
// argument, past every shell, and that no token is shown.
package login

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/manners"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/terminal"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/roster"
	"github.com/drawbridge-mcp/drawbridge/secrets"
	"github.com/spf13/cobra"
)

// A Desk is where the commands are typed.
type Desk struct {
	In       io.Reader
	Out, Err io.Writer
	// Env looks a variable up; Environ is the whole environment, which a browser gets.
	Env     func(string) (string, bool)
	Environ []string
	// Roster is what the flags of the command line come to.
	Roster func() *roster.Roster
	// Vault opens what keeps credentials.
	Vault func() (*secrets.Vault, error)
	// Open opens the servers, starts none, and runs them while work does.
	Open func(ctx context.Context, work func(context.Context, roster.Signer) error) error
	// Porter gives what signs out of the servers that are configured.
	Porter func(roster.Roll) (roster.Porter, error)
	// Failed ends a command that has said why.
	Failed error
}

// Commands are auth, reauth and unauth.
func (d Desk) Commands() []*cobra.Command {
	return []*cobra.Command{d.authCommand(), d.reauthCommand(), d.unauthCommand()}
}

// A way is how a person wants to sign in, as the flags say it.
type way struct {
	roster.Visit
	noBrowser, json bool
	text            string
}

// flags adds those that auth and reauth have.
func (w *way) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&w.Device, "device", false, "sign in on another device: an address and a code are shown")
	cmd.Flags().BoolVar(&w.noBrowser, "no-browser", false, "open no browser: the address is shown")
	cmd.Flags().StringVar(&w.text, "code", "", "`ADDRESS` that the browser ended at, or - for standard input: ends a sign-in that was begun before")
	cmd.Flags().DurationVar(&w.Limit, "timeout", 5*time.Minute, "how long signing in may take")
	cmd.Flags().BoolVar(&w.json, "json", false, "print JSON")
}

func (d Desk) authCommand() *cobra.Command {
	var w way
	cmd := d.one(&cobra.Command{
		Use:     "auth NAME",
		Aliases: []string{"login"},
		Short:   "Sign in at a server that wants to know who asks",
		Long: `Sign in at a server that wants to know who asks. The address is shown, and opened with the program
that $BROWSER names, or else with that of the system. The browser comes back to this machine; where
it cannot, paste the address that it ended at, or give that to --code, here or later.

What comes of it is kept in the vault, sealed, and renews itself; whatever serves the server hears of
it within a second.`,
		Example: `  drawbridge mcp auth github
  drawbridge mcp auth github --device            where there is no browser
  drawbridge mcp auth github --no-browser
  pbpaste | drawbridge mcp auth github --code -`,
	}, func(ctx context.Context, id drawbridge.ServerID) error { return d.auth(ctx, id, w) })
	w.flags(cmd)
	cmd.Flags().BoolVar(&w.Again, "again", false, "sign in anew where somebody is signed in, as reauth does")
	return cmd
}

func (d Desk) reauthCommand() *cobra.Command {
	w := way{Visit: roster.Visit{Again: true}}
	cmd := d.one(&cobra.Command{
		Use:     "reauth NAME",
		Short:   "Sign in anew: what is kept is replaced once that worked",
		Example: "  drawbridge mcp reauth github",
	}, func(ctx context.Context, id drawbridge.ServerID) error { return d.auth(ctx, id, w) })
	w.flags(cmd)
	return cmd
}

func (d Desk) unauthCommand() *cobra.Command {
	var asJSON bool
	cmd := d.one(&cobra.Command{
		Use:     "unauth NAME",
		Aliases: []string{"logout"},
		Short:   "Sign out: what is kept is removed, and revoked",
		Example: "  drawbridge mcp unauth github",
	}, func(ctx context.Context, id drawbridge.ServerID) error { return d.unauth(ctx, id, asJSON) })
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// one is a command about one server by its name.
func (d Desk) one(cmd *cobra.Command, act func(context.Context, drawbridge.ServerID) error) *cobra.Command {
	cmd.Args = manners.Exactly(1, "the name of one server")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return act(cmd.Context(), drawbridge.ServerID(args[0])) }
	return cmd
}

// A report is what a sign-in came to, as --json prints it.
type report struct {
	drawbridge.Credential
	Outcome roster.Outcome `json:"outcome"`
	// Kept says where what came of it is.
	Kept  string `json:"kept,omitempty"`
	Tools int    `json:"tools"`
	// Fault is what went wrong with the server after that.
	Fault string `json:"fault,omitempty"`
}

// Auth signs in, as "auth NAME" does without flags.
func (d Desk) Auth(ctx context.Context, id drawbridge.ServerID) error { return d.auth(ctx, id, way{}) }

func (d Desk) auth(ctx context.Context, id drawbridge.ServerID, w way) error {
	servers := d.Roster()
	roll, err := servers.Read(ctx)
	if err == nil {
		err = servers.Startable(roll, id)
	}
	if err == nil {
		w.Text, err = d.pasted(ctx, w.text)
	}
	if err != nil {
		return err
	}
	w.Server = id
	if row, _ := roll.Lookup(id); row.Auth != nil {
		w.Device = w.Device || row.Auth.Flow == "device"
		w.noBrowser = w.noBrowser || row.Auth.Flow == "paste"
	}
	var r report
	err = d.Open(ctx, func(ctx context.Context, s roster.Signer) error {
		r.Outcome, err = servers.SignIn(ctx, s, w.Visit, &usher{desk: d, opens: !w.noBrowser && !w.Device})
		if err != nil {
			return err
		}
		if r.Outcome == roster.NotWanted {
			return nil
		}
		if r.Credential, err = StateOf(s, id); err != nil {
			return err
		}
		listing, err := s.Mount(ctx, id)
		r.Tools = len(listing.Tools)
		if err != nil {
			r.Fault = err.Error()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return d.tell(id, r, w.json)
}

// StateOf says how we stand with a server.
func StateOf(s roster.Porter, id drawbridge.ServerID) (drawbridge.Credential, error) {
	access, err := s.Access(id)
	if err != nil {
		return drawbridge.Credential{}, err
	}
	return access.State()
}

// pasted is what --code says: for "-" a line at a terminal, else all of standard input.
func (d Desk) pasted(ctx context.Context, text string) (string, error) {
	if text != "-" {
		return text, nil
	}
	if talk, ok := terminal.Begin(ctx, d.In, d.Err); ok {
		defer talk.Close()
		line, err := talk.Ask("The address that your browser ended at: ")
		if err != nil || strings.TrimSpace(line) == "" {
			talk.Say("")
			return "", roster.SignInCancelled
		}
		return line, nil
	}
	const most = 16 << 10
	data, err := io.ReadAll(io.LimitReader(d.In, most))
	if err != nil {
		return "", fmt.Errorf("read standard input: %w", err)
	}
	if text = strings.TrimSpace(string(data)); text == "" {
		return "", roster.Mistake("standard input has no address (drawbridge mcp auth NAME --code -)")
	}
	return text, nil
}

// tell says what came of a sign-in.
func (d Desk) tell(id drawbridge.ServerID, r report, asJSON bool) error {
	if v, err := d.Vault(); err == nil && r.Outcome != roster.NotWanted {
		r.Kept = v.Where()
	}
	r.Server, r.URL = id, "" // what was begun is over
	var err error
	switch {
	case asJSON:
		err = manners.PrintJSON(d.Out, r)
	case r.Outcome == roster.NotWanted:
		_, err = safetext.Fprintln(d.Out, roster.NoNeed)
	default:
		err = d.tellPerson(r)
	}
	if err == nil && r.Fault != "" {
		err = d.Failed
	}
	return err
}

func (d Desk) tellPerson(r report) error {
	did := "Signed in at"
	if r.Outcome == roster.AlreadySignedIn {
		did = "You are signed in already at"
	}
	safetext.Fprintf(d.Out, "✓ %s %q%s\n", did, r.Server, with(r.Issuer))
	safetext.Fprintf(d.Out, "  %s\n", Standing(r.Credential))
	if len(r.Scopes) > 0 {
		safetext.Fprintf(d.Out, "  rights: %s\n", strings.Join(r.Scopes, " "))
	}
	safetext.Fprintf(d.Out, "  kept as %s\n  %s\n", r.Name, r.Kept)
	var err error
	switch {
	case r.Fault != "":
		_, err = safetext.Fprintf(d.Out, "✗ Failed to connect to %q: %s\n", r.Server, r.Fault)
	case r.Outcome == roster.AlreadySignedIn:
		_, err = safetext.Fprintf(d.Out, "  the server answers: %s (drawbridge mcp reauth %s signs in anew)\n", tools(r.Tools), r.Server)
	default:
		_, err = safetext.Fprintf(d.Out, "  the server answers: %s\n", tools(r.Tools))
	}
	return err
}

func with(issuer string) string {
	if issuer == "" {
		return ""
	}
	return " with " + issuer
}

func tools(n int) string {
	if n == 1 {
		return "1 tool"
	}
	return fmt.Sprintf("%d tools", n)
}

func (d Desk) unauth(ctx context.Context, id drawbridge.ServerID, asJSON bool) error {
	servers := d.Roster()
	roll, err := servers.Read(ctx)
	if err != nil {
		return err
	}
	p, err := d.Porter(roll)
	if err != nil {
		return err
	}
	out, err := servers.SignOut(ctx, roll, id, p)
	switch {
	case err != nil:
		return err
	case asJSON:
		return manners.PrintJSON(d.Out, out)
	case out.Was && !out.Revoked:
		safetext.Fprintf(d.Err, "%s: what is kept here is removed; the issuer may take it still: %s\n", id, out.Why)
	}
	_, err = safetext.Fprintln(d.Out, out)
	return err
}

// An usher shows a person the way: on standard error, in a browser, and at a terminal by asking for the way back.
type usher struct {
	desk  Desk
	opens bool
}

var _ roster.Usher = (*usher)(nil)

// Lead shows where to sign in.
func (u *usher) Lead(p roster.Place) {
	w := u.desk.Err
	if p.Code != "" {
		safetext.Fprintf(w, "To sign in at %q%s, open on any device\n\n  %s\n\nand enter the code %s\n", p.Server, with(p.Issuer), p.URL, p.Code)
		return
	}
	safetext.Fprintf(w, "To sign in at %q%s, open\n\n  %s\n\n", p.Server, with(p.Issuer), p.URL)
	if !u.opens {
		return
	}
	if err := u.desk.browse(p.URL); err != nil {
		safetext.Fprintf(w, "%v: open it yourself.\n", err)
		return
	}
	fmt.Fprintln(w, "Your browser should show it now.")
}

// Bring asks for the address that the browser ended at; where nobody is there to ask, it waits for the end.
func (u *usher) Bring(ctx context.Context, wrong error) (string, error) {
	talk, ok := terminal.Begin(ctx, u.desk.In, u.desk.Err)
	if !ok {
		if wrong != nil {
			return "", wrong
		}
		<-ctx.Done()
		return "", ctx.Err()
	}
	if wrong != nil {
		talk.Say(wrong.Error())
	}
	text, err := talk.Ask("Or paste the address that your browser ended at: ")
	talk.Close()
	if err != nil {
		fmt.Fprintln(u.desk.Err) // the question stands there still
	}
	if err != nil && ctx.Err() == nil {
		err = errors.New("the person went away")
	}
	return text, err
}
