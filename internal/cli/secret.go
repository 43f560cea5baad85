package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/roster"
	"github.com/drawbridge-mcp/drawbridge/secrets"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func (a *app) secretCommand() *cobra.Command {
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
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.secretSetCommand(), a.secretListCommand(), a.secretRemoveCommand(), a.secretMoveCommand())
	return cmd
}

// vault opens what keeps secrets, once.
func (a *app) vault() (*secrets.Vault, error) {
	var err error
	if a.opened == nil {
		a.opened, err = gateway.OpenVault(a.config())
	}
	return a.opened, err
}

// sayWhere says where secrets are, where that is not the keychain.
func (a *app) sayWhere() {
	if v, err := a.vault(); err == nil && v.Place() != secrets.InKeychain {
		fmt.Fprintln(a.Err, v.Where())
	}
}

// A keeper opens the vault when it is asked.
type keeper struct{ a *app }

var _ roster.Keeper = keeper{}

// values gives what the person keeps in the vault.
func (k keeper) values() (secrets.Values, error) {
	v, err := k.a.vault()
	if err != nil {
		return secrets.Values{}, err
	}
	return v.Values(), nil
}

func (k keeper) Get(name string) ([]byte, error) {
	values, err := k.values()
	if err != nil {
		return nil, err
	}
	return values.Get(name)
}

func (k keeper) Put(name string, value []byte) error {
	values, err := k.values()
	if err != nil {
		return err
	}
	return values.Put(name, value)
}

func (k keeper) Delete(name string) error {
	values, err := k.values()
	if err != nil {
		return err
	}
	return values.Delete(name)
}

// lookup is Get for those to whom a value that cannot be had is none.
func (k keeper) lookup(name string) (string, bool) {
	value, err := k.Get(name)
	return string(value), err == nil
}

// secretName is how a secret may be called, so that a reference to it ends where it should.
var secretName = regexp.MustCompile(`^[A-Za-z0-9._@/-]{1,128}$`)

// oneSecret is a command about one secret by its name.
func oneSecret(cmd *cobra.Command, act func(ctx context.Context, name string) error) *cobra.Command {
	cmd.Args = exactly(1, "the name of one secret")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !secretName.MatchString(args[0]) {
			return usageError{errors.New("the name of a secret has letters, digits and . _ @ / - only, and at most 128 of them")}
		}
		return act(cmd.Context(), args[0])
	}
	return cmd
}

func (a *app) secretSetCommand() *cobra.Command {
	return oneSecret(&cobra.Command{
		Use:   "set NAME",
		Short: "Keep a value, which is typed or comes from standard input",
		Long: `Keep a value, in the place of an older one of that name. At a terminal it is asked for, and not
shown; else it is all of standard input, without a line end behind it. It is never an argument:
other processes see those.`,
		Example: "  drawbridge secret set GITHUB_TOKEN\n  pass show github | drawbridge secret set GITHUB_TOKEN",
	}, a.setSecret)
}

func (a *app) setSecret(ctx context.Context, name string) error {
	v, err := a.vault()
	if err != nil {
		return err
	}
	value, err := a.readSecret(ctx, name)
	if err != nil {
		return err
	}
	if err := v.Values().Put(name, value); err != nil {
		return err
	}
	in := "a sealed file"
	if v.Place() == secrets.InKeychain {
		in = "the keychain"
	}
	a.sayWhere()
	_, err = fmt.Fprintf(a.Out, "✓ %s is kept in %s: write ${keychain:%s} for it in \"env\" or \"headers\"\n", name, in, name)
	return err
}

// readSecret gives the value that a person types, or that comes from standard input.
func (a *app) readSecret(ctx context.Context, name string) ([]byte, error) {
	var value []byte
	if d, ok := a.dialogue(ctx); ok {
		typed, err := d.AskHidden("Value of " + name + ": ")
		d.close()
		if err != nil {
			fmt.Fprintln(a.Err)
			return nil, errors.New("nothing was kept: there was no answer")
		}
		value = []byte(typed)
	} else if in, ok := a.In.(*os.File); ok && term.IsTerminal(int(in.Fd())) {
		return nil, usageError{errors.New("the value is asked for on standard error, which is not a terminal: give it on standard input")}
	} else {
		const most = 64 << 10
		all, err := io.ReadAll(io.LimitReader(a.In, most+3))
		if err != nil {
			return nil, fmt.Errorf("read the value from standard input: %w", err)
		}
		value = bytes.TrimSuffix(bytes.TrimSuffix(all, []byte("\n")), []byte("\r"))
	}
	if len(value) == 0 {
		return nil, usageError{errors.New("nothing was kept: the value is empty")}
	}
	return value, nil
}

// secretsListed is what "secret list" prints with --json. No value is in it.
type secretsListed struct {
	Where   string          `json:"where"`
	Secrets []secrets.Entry `json:"secrets"`
}

func (a *app) secretListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "Show the names of what is kept, never the values",
		Args:    exactly(0, "no arguments"),
		RunE:    func(*cobra.Command, []string) error { return a.listSecrets(asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) listSecrets(asJSON bool) error {
	v, err := a.vault()
	if err != nil {
		return err
	}
	all, damage := v.Values().List()
	if asJSON {
		if err := printJSON(a.Out, secretsListed{v.Where(), append([]secrets.Entry{}, all...)}); err != nil {
			return err
		}
		return damage
	}
	if len(all) == 0 {
		fmt.Fprintln(a.Out, "no secrets are kept (drawbridge secret set NAME keeps one)")
		return damage
	}
	tw := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "NAME\tKEY IN\tCHANGED")
	for _, e := range all {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", e.Name, e.Place, e.Changed.Local().Format(time.DateTime))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(a.Err, v.Where())
	return damage
}

func (a *app) secretRemoveCommand() *cobra.Command {
	cmd := oneSecret(&cobra.Command{
		Use:     "remove NAME",
		Aliases: []string{"rm"},
		Short:   "Forget a value",
		Example: "  drawbridge secret remove GITHUB_TOKEN",
	}, a.removeSecret)
	return cmd
}

func (a *app) removeSecret(ctx context.Context, name string) error {
	v, err := a.vault()
	if err != nil {
		return err
	}
	err = v.Values().Delete(name)
	_, there := keeper{a}.lookup(name)
	switch {
	case errors.Is(err, secrets.ErrNone) && there:
		return fmt.Errorf("%q was put into the keychain by hand, under the service drawbridge: remove it there", name)
	case errors.Is(err, secrets.ErrNone):
		return fmt.Errorf("there is no secret %q (drawbridge secret list)", name)
	case err != nil:
		return err
	}
	if set, err := a.configuration(ctx); err == nil && !there {
		for _, row := range set.Servers {
			if strings.Contains(string(row.Row), "${keychain:"+name+"}") {
				fmt.Fprintf(a.Err, "%s refers to it still, at %s\n", row.ID, row.Origin)
			}
		}
	}
	_, err = fmt.Fprintf(a.Out, "✓ %s is forgotten\n", name)
	return err
}

func (a *app) secretMoveCommand() *cobra.Command {
	var asJSON bool
	cmd := oneServer(&cobra.Command{
		Use:   "move SERVER",
		Short: "Move the secrets of a server's row out of the file",
		Long: `Move the secrets that stand in a server's row in plain text out of the file: values of "env" and
"headers", and the client's secret in "auth", that look like secrets. Each is kept before the
row is changed to refer to it. Secrets among the arguments, and in a url, cannot be moved.`,
		Example: "  drawbridge secret move github",
	}, func(ctx context.Context, id drawbridge.ServerID) error {
		c, err := a.roster().MoveSecrets(ctx, id)
		if err != nil {
			return err
		}
		return a.printChange(c, asJSON)
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
