package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
	"github.com/spf13/cobra"
)

// signInCommands implements the commands that sign in and out.
type signInCommands struct {
	In       io.Reader
	Out, Err io.Writer
	// Env looks up an environment variable. Environ is the whole environment, with which a browser is started.
	Env     func(string) (string, bool)
	Environ []string
	// Admin returns the service that signs in and out.
	Admin func() *admin.Service
	// Vault opens the vault, which stores credentials.
	Vault func() (*secrets.Vault, error)
	// WithSignInServers calls work with the servers of a running gateway, which starts servers only on demand.
	WithSignInServers func(ctx context.Context, work func(context.Context, admin.SignInServers) error) error
	// SignOutProvider returns the provider of the sign-ins at the configured servers; it starts no server.
	SignOutProvider func(context.Context, admin.ServerList) (admin.SignInProvider, error)
	// ErrAlreadyPrinted is the error of a command that failed and has printed the reason.
	ErrAlreadyPrinted error
}

// commands returns the commands auth, reauth and unauth.
func (d signInCommands) commands() []*cobra.Command {
	return []*cobra.Command{d.authCommand(), d.reauthCommand(), d.unauthCommand()}
}

// signInFlags are the flags of a sign-in.
type signInFlags struct {
	admin.SignInRequest
	noBrowser, asJSON bool
	codeFlag          string
	acceptFlag        []string
}

// register adds the flags that auth and reauth share.
func (w *signInFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&w.Device, "device", false, "sign in on another device: an address and a code are shown")
	cmd.Flags().BoolVar(&w.noBrowser, "no-browser", false, "open no browser: the address is shown")
	cmd.Flags().StringVar(&w.codeFlag, "code", "",
		"last `ADDRESS` of the browser, or - for standard input: completes a sign-in that was started before")
	cmd.Flags().StringSliceVar(&w.acceptFlag, "accept-endpoints", nil,
		"`PAGE,TOKEN`: the origins of the sign-in page and of the token endpoint, to accept without a question")
	cmd.Flags().DurationVar(&w.Timeout, "timeout", 5*time.Minute, "how long signing in may take")
	cmd.Flags().BoolVar(&w.asJSON, "json", false, "print JSON")
}

func (d signInCommands) authCommand() *cobra.Command {
	var w signInFlags
	cmd := withServerArg(&cobra.Command{
		Use:     "auth NAME",
		Aliases: []string{"login"},
		Short:   "Sign in at a server that requires authentication",
		Long: `Sign in at a server that requires authentication. The address is printed, and opened with the
program that $BROWSER names, or with the system's browser. The browser comes back to this machine; where
it cannot, paste the last address of the browser, or pass it to --code, here or later.

The credential is stored encrypted and renewed automatically. Running processes use it within
a second.`,
		Example: `  drawbridge mcp auth github
  drawbridge mcp auth github --device            on a machine without a browser
  drawbridge mcp auth github --no-browser
  pbpaste | drawbridge mcp auth github --code -`,
	}, func(ctx context.Context, id drawbridge.ServerID) error { return d.signIn(ctx, id, w) })
	w.register(cmd)
	cmd.Flags().BoolVar(&w.Reauthenticate, "again", false, "sign in again even if already signed in, as reauth does")
	return cmd
}

func (d signInCommands) reauthCommand() *cobra.Command {
	w := signInFlags{SignInRequest: admin.SignInRequest{Reauthenticate: true}}
	cmd := withServerArg(&cobra.Command{
		Use:     "reauth NAME",
		Short:   "Sign in again; the old credential is replaced once that works",
		Example: "  drawbridge mcp reauth github",
	}, func(ctx context.Context, id drawbridge.ServerID) error { return d.signIn(ctx, id, w) })
	w.register(cmd)
	return cmd
}

func (d signInCommands) unauthCommand() *cobra.Command {
	var asJSON bool
	cmd := withServerArg(&cobra.Command{
		Use:     "unauth NAME",
		Aliases: []string{"logout"},
		Short:   "Sign out: revoke and remove the stored credential",
		Example: "  drawbridge mcp unauth github",
	}, func(ctx context.Context, id drawbridge.ServerID) error { return d.signOut(ctx, id, asJSON) })
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// A signInReport is the result of a sign-in, as --json prints it.
type signInReport struct {
	drawbridge.CredentialStatus
	Outcome admin.SignInOutcome `json:"outcome"`
	// Kept describes where the credential is stored and how it is protected.
	Kept  string `json:"kept,omitempty"`
	Tools int    `json:"tools"`
	// Fault is the error of the first connection to the server after the sign-in.
	Fault string `json:"fault,omitempty"`
}

// signInDefault signs in, as "auth NAME" does without flags.
func (d signInCommands) signInDefault(ctx context.Context, id drawbridge.ServerID) error {
	return d.signIn(ctx, id, signInFlags{})
}

func (d signInCommands) signIn(ctx context.Context, id drawbridge.ServerID, w signInFlags) error {
	servers := d.Admin()
	roll, err := servers.ReadServers(ctx)
	if err == nil {
		err = servers.CheckStartable(roll, id)
	}
	if err == nil {
		w.RedirectURL, err = d.readRedirectURL(ctx, w.codeFlag)
	}
	if err != nil {
		return err
	}
	if w.AcceptedEndpoints, err = parseEndpoints(w.acceptFlag); err != nil {
		return err
	}
	w.Server = id
	if row, _ := roll.Lookup(id); row.Auth != nil {
		w.Device = w.Device || row.Auth.Flow == "device"
		w.noBrowser = w.noBrowser || row.Auth.Flow == "paste"
	}
	var r signInReport
	err = d.WithSignInServers(ctx, func(ctx context.Context, s admin.SignInServers) error {
		r.Outcome, err = servers.SignIn(ctx, s, w.SignInRequest, &terminalSignInPrompter{commands: d,
			opensBrowser: !w.noBrowser && !w.Device})
		if err != nil {
			return err
		}
		if r.Outcome == admin.SignInNotNeeded {
			return nil
		}
		if r.CredentialStatus, err = readCredential(s, id); err != nil {
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
	return d.printSignInReport(id, r, w.asJSON)
}

// parseEndpoints parses the value of --accept-endpoints. The error is an admin.UserError.
func parseEndpoints(texts []string) (drawbridge.SignInEndpoints, error) {
	if len(texts) == 0 {
		return drawbridge.SignInEndpoints{}, nil
	}
	e, err := config.ParseSignInEndpoints(texts)
	if err != nil {
		return e, admin.UserError("--accept-endpoints " + err.Error())
	}
	return e, nil
}

// readCredential returns the state of the credential for a server.
func readCredential(s admin.SignInProvider, id drawbridge.ServerID) (drawbridge.CredentialStatus, error) {
	access, err := s.ServerSignIn(id)
	if err != nil {
		return drawbridge.CredentialStatus{}, err
	}
	return access.Status()
}

// readRedirectURL returns the value of --code, which is the last address of the browser. For "-" it reads one line from
// a terminal, or all of standard input if there is no terminal.
func (d signInCommands) readRedirectURL(ctx context.Context, text string) (string, error) {
	if text != "-" {
		return text, nil
	}
	if talk, ok := StartDialogue(ctx, d.In, d.Err); ok {
		defer talk.Close()
		line, err := talk.Ask("The address that your browser ended at: ")
		if err != nil || strings.TrimSpace(line) == "" {
			talk.Say("")
			return "", admin.ErrSignInCancelled
		}
		return line, nil
	}
	const most = 16 << 10
	data, err := io.ReadAll(io.LimitReader(d.In, most))
	if err != nil {
		return "", fmt.Errorf("read standard input: %w", err)
	}
	if text = strings.TrimSpace(string(data)); text == "" {
		return "", admin.UserError("standard input is empty: write the address that your browser ended at to it")
	}
	return text, nil
}

// printSignInReport prints the result of a sign-in.
func (d signInCommands) printSignInReport(id drawbridge.ServerID, r signInReport, asJSON bool) error {
	if v, err := d.Vault(); err == nil && r.Outcome != admin.SignInNotNeeded {
		r.Kept = v.DescribeProtection()
	}
	r.Server, r.URL = id, "" // the sign-in has ended
	var err error
	switch {
	case asJSON:
		err = PrintJSON(d.Out, r)
	case r.Outcome == admin.SignInNotNeeded:
		_, err = safetext.Fprintln(d.Out, admin.SignInNotNeededText)
	default:
		err = d.printSignInText(r)
	}
	if err == nil && r.Fault != "" {
		err = d.ErrAlreadyPrinted
	}
	return err
}

func (d signInCommands) printSignInText(r signInReport) error {
	did := "Signed in at"
	if r.Outcome == admin.AlreadySignedIn {
		did = "You are signed in already at"
	}
	safetext.Fprintf(d.Out, "✓ %s %q%s\n", did, r.Server, withIssuer(r.Issuer))
	safetext.Fprintf(d.Out, "  %s\n", admin.DescribeCredential(r.CredentialStatus))
	if len(r.Scopes) > 0 {
		safetext.Fprintf(d.Out, "  rights: %s\n", strings.Join(r.Scopes, " "))
	}
	safetext.Fprintf(d.Out, "  kept as %s\n  %s\n", r.Name, r.Kept)
	var err error
	switch {
	case r.Fault != "":
		_, err = safetext.Fprintf(d.Out, "✗ Failed to connect to %q: %s\n", r.Server, r.Fault)
	case r.Outcome == admin.AlreadySignedIn:
		_, err = safetext.Fprintf(d.Out, "  the server answers: %s (drawbridge mcp reauth %s signs in again)\n",
			formatToolCount(r.Tools), r.Server)
	default:
		_, err = safetext.Fprintf(d.Out, "  the server answers: %s\n", formatToolCount(r.Tools))
	}
	return err
}

func withIssuer(issuer string) string {
	if issuer == "" {
		return ""
	}
	return " with " + issuer
}

func formatToolCount(n int) string {
	if n == 1 {
		return "1 tool"
	}
	return fmt.Sprintf("%d tools", n)
}

func (d signInCommands) signOut(ctx context.Context, id drawbridge.ServerID, asJSON bool) error {
	servers := d.Admin()
	roll, err := servers.ReadServers(ctx)
	if err != nil {
		return err
	}
	p, err := d.SignOutProvider(ctx, roll)
	if err != nil {
		return err
	}
	out, err := servers.SignOut(ctx, roll, id, p)
	switch {
	case err != nil:
		return err
	case asJSON:
		return PrintJSON(d.Out, out)
	case out.WasSignedIn && !out.Revoked:
		safetext.Fprintf(d.Err, "%s: the stored credential is removed, but the issuer may still accept it: %s\n", id, out.Why)
	}
	_, err = safetext.Fprintln(d.Out, out)
	return err
}

// A terminalSignInPrompter guides a person through a sign-in: it prints the address of the sign-in page and opens a
// browser. At a terminal it also asks for the last address of the browser, which contains the result of the sign-in.
type terminalSignInPrompter struct {
	commands     signInCommands
	opensBrowser bool
}

var _ admin.SignInPrompter = (*terminalSignInPrompter)(nil)

// ShowSignInURL prints the address of the sign-in page, and opens a browser if opensBrowser is set. For a sign-in on
// another device it also prints the code, and opens no browser.
func (u *terminalSignInPrompter) ShowSignInURL(p admin.SignInPrompt) {
	w := u.commands.Err
	if p.Elsewhere != "" {
		safetext.Fprintf(w, "%s has its %s.\n", p.Issuer, p.Elsewhere)
	}
	if p.Code != "" {
		safetext.Fprintf(w, "To sign in at %q%s, open on any device\n\n  %s\n\nand enter the code %s\n", p.Server,
			withIssuer(p.Issuer), p.URL, p.Code)
		return
	}
	safetext.Fprintf(w, "To sign in at %q%s, open\n\n  %s\n\n", p.Server, withIssuer(p.Issuer), p.URL)
	if !u.opensBrowser {
		return
	}
	if err := u.commands.openBrowser(p.URL); err != nil {
		safetext.Fprintf(w, "%v: open it yourself.\n", err)
		return
	}
	fmt.Fprintln(w, "Your browser should show it now.")
}

// ConfirmEndpoints asks at a terminal whether a sign-in may use the two origins in asked. They are the origins of the
// sign-in page and of the token endpoint. Without a terminal it returns asked as the error.
func (u *terminalSignInPrompter) ConfirmEndpoints(ctx context.Context,
	asked *drawbridge.EndpointsNotAcceptedError) (bool, error) {
	talk, ok := StartDialogue(ctx, u.commands.In, u.commands.Err)
	if !ok {
		return false, asked
	}
	defer talk.Close()
	talk.Say(safetext.Line(fmt.Sprintf("%q signs in with %s. That issuer has you sign in at", asked.Server,
		asked.Issuer)))
	talk.Say(safetext.Line("  " + asked.Endpoints.Page))
	talk.Say("and the result, which opens your account there, is sent to")
	talk.Say(safetext.Line("  " + asked.Endpoints.Token))
	talk.Say("Accept that only if both belong to the same service.")
	return talk.Confirm("Sign in at the first, and send the result to the second?", false)
}

// AskRedirectURL asks for the last address of the browser. wrong describes what is wrong with the address that was
// entered before; nil at the first question. Without a terminal it returns wrong; if wrong is nil, it waits until ctx
// ends.
func (u *terminalSignInPrompter) AskRedirectURL(ctx context.Context, wrong error) (string, error) {
	talk, ok := StartDialogue(ctx, u.commands.In, u.commands.Err)
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
		fmt.Fprintln(u.commands.Err) // the question is still on the last line
	}
	if err != nil && ctx.Err() == nil {
		err = errors.New("the person went away")
	}
	return text, err
}
