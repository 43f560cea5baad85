// Package secret is the commands that keep secrets out of files.
package secret

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
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
	// Vault opens what keeps secrets.
	Vault func() (*secrets.Vault, error)
	// Configuration reads what is configured.
	Configuration func(ctx context.Context) (config.Set, error)
	// Move moves the secrets of a server's row out of the file.
	Move func(ctx context.Context, id drawbridge.ServerID, asJSON bool) error
	// Clerk has on record which secrets are kept and forgotten, by their names.
	Clerk gateway.Clerk
}

// Command is the command "secret", with those below it.
func (d Desk) Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "secret",
		Short: "Keep secrets out of files: in the keychain, under names that rows refer to",
		Long: `Keep secrets out of files. A value that is kept as NAME is what ${keychain:NAME} stands for in
"env", "headers" and "auth" of a server's row.

Values are sealed files beside the store, and the key that opens them is in the keychain of the
system; where none answers, or with DRAWBRIDGE_KEYCHAIN=off, the key lies beside them.`,
		Example: `  drawbridge secret set GITHUB_TOKEN             ask for the value, and do not show it
  op read op://work/gh/token | drawbridge secret set GITHUB_TOKEN
  drawbridge secret move github                  out of the row of a server
  drawbridge secret list`,
	}
	cmd.AddCommand(d.setCommand(), d.listCommand(), d.removeCommand(), d.moveCommand())
	return cmd
}

// validName is how a secret may be called, so that a reference to it ends where it should.
var validName = regexp.MustCompile(`^[A-Za-z0-9._@/-]+$`)

// mostName is how long such a name may be.
const mostName = 128

// one is a command about one secret by its name.
func one(cmd *cobra.Command, act func(ctx context.Context, name string) error) *cobra.Command {
	cmd.Args = manners.Exactly(1, "the name of one secret")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args[0]) > mostName || !validName.MatchString(args[0]) {
			return roster.Mistake("the name of a secret has letters, digits and . _ @ / - only, and at most 128 of them")
		}
		return act(cmd.Context(), args[0])
	}
	return cmd
}

func (d Desk) setCommand() *cobra.Command {
	return one(&cobra.Command{
		Use:   "set NAME",
		Short: "Keep a value, which is typed or comes from standard input",
		Long: `Keep a value, in the place of an older one of that name. At a terminal it is asked for, and not
shown; else it is all of standard input, without a line end behind it. It is never an argument:
other processes see those.`,
		Example: "  drawbridge secret set GITHUB_TOKEN\n  pass show github | drawbridge secret set GITHUB_TOKEN",
	}, d.set)
}

func (d Desk) set(ctx context.Context, name string) error {
	v, err := d.Vault()
	if err != nil {
		return err
	}
	value, err := d.read(ctx, name)
	if err != nil {
		return err
	}
	if err := d.Clerk.Do(gateway.Act{Command: "secret set", On: name}, func() error { return v.Values().Put(name, value) }); err != nil {
		return err
	}
	with := "the keychain"
	if v.Place() != secrets.InKeychain {
		with = "a file"
		safetext.Fprintln(d.Err, v.Where())
	}
	_, err = safetext.Fprintf(d.Out, "✓ %s is kept, sealed with a key in %s: write ${keychain:%s} for it in \"env\" or \"headers\"\n", name, with, name)
	return err
}

// read gives the value that a person types, or that comes from standard input.
func (d Desk) read(ctx context.Context, name string) ([]byte, error) {
	var value []byte
	if person, ok := terminal.Begin(ctx, d.In, d.Err); ok {
		typed, err := person.AskHidden("Value of " + name + ": ")
		person.Close()
		if err != nil {
			fmt.Fprintln(d.Err)
			return nil, errors.New("nothing was kept: there was no answer")
		}
		value = []byte(typed)
	} else if terminal.Is(d.In) {
		return nil, roster.Mistake("the value is asked for on standard error, which is not a terminal: give it on standard input")
	} else {
		const most = 64 << 10
		all, err := io.ReadAll(io.LimitReader(d.In, most+3))
		if err != nil {
			return nil, fmt.Errorf("read the value from standard input: %w", err)
		}
		value = bytes.TrimSuffix(bytes.TrimSuffix(all, []byte("\n")), []byte("\r"))
	}
	if len(value) == 0 {
		return nil, roster.Mistake("nothing was kept: the value is empty")
	}
	return value, nil
}

// listed is what "secret list" prints with --json. No value is in it.
type listed struct {
	Where   string          `json:"where"`
	Secrets []secrets.Entry `json:"secrets"`
}

func (d Desk) listCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "Show the names of what is kept, never the values",
		Args:    manners.Exactly(0, "no arguments"),
		RunE:    func(*cobra.Command, []string) error { return d.list(asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (d Desk) list(asJSON bool) error {
	v, err := d.Vault()
	if err != nil {
		return err
	}
	all, damage := v.Values().List()
	if asJSON {
		if err := manners.PrintJSON(d.Out, listed{v.Where(), append([]secrets.Entry{}, all...)}); err != nil {
			return err
		}
		return damage
	}
	if len(all) == 0 {
		fmt.Fprintln(d.Out, "no secrets are kept (drawbridge secret set NAME keeps one)")
		return damage
	}
	tw := tabwriter.NewWriter(d.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "NAME\tKEY IN\tCHANGED")
	for _, e := range all {
		safetext.Fprintf(tw, "%s\t%s\t%s\n", e.Name, e.Place, e.Changed.Local().Format(time.DateTime))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	safetext.Fprintln(d.Err, v.Where())
	return damage
}

func (d Desk) removeCommand() *cobra.Command {
	cmd := one(&cobra.Command{
		Use:     "remove NAME",
		Aliases: []string{"rm"},
		Short:   "Forget a value",
		Example: "  drawbridge secret remove GITHUB_TOKEN",
	}, d.remove)
	return cmd
}

func (d Desk) remove(ctx context.Context, name string) error {
	v, err := d.Vault()
	if err != nil {
		return err
	}
	err = d.Clerk.Do(gateway.Act{Command: "secret remove", On: name}, func() error { return v.Values().Delete(name) })
	_, unkept := v.Values().Get(name)
	switch {
	case errors.Is(err, secrets.ErrNone) && unkept == nil:
		return fmt.Errorf("%q was put into the keychain by hand, under the service drawbridge: remove it there", name)
	case errors.Is(err, secrets.ErrNone):
		return fmt.Errorf("there is no secret %q (drawbridge secret list)", name)
	case err != nil:
		return err
	}
	if set, err := d.Configuration(ctx); err == nil && unkept != nil {
		for _, row := range set.Servers {
			if strings.Contains(string(row.Row), "${keychain:"+name+"}") {
				safetext.Fprintf(d.Err, "%s refers to it still, at %s\n", row.ID, row.Origin)
			}
		}
	}
	_, err = safetext.Fprintf(d.Out, "✓ %s is forgotten\n", name)
	return err
}

func (d Desk) moveCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "move SERVER",
		Short: "Move the secrets of a server's row out of the file",
		Long: `Move the secrets that stand in a server's row in plain text out of the file: values of "env" and
"headers", and the client's secret in "auth", that look like secrets. Each is kept before the
row is changed to refer to it. Secrets among the arguments, and in a url, cannot be moved.`,
		Example: "  drawbridge secret move github",
		Args:    manners.Exactly(1, "the name of one server"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.Move(cmd.Context(), drawbridge.ServerID(args[0]), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
