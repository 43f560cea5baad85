package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

// secretCommands implements the command "secret" and its subcommands.
type secretCommands struct {
	In       io.Reader
	Out, Err io.Writer
	// Admin returns the service that stores the secrets.
	Admin func() *admin.Service
	// PrintChange prints the change of a server's configuration.
	PrintChange func(c admin.Change, asJSON bool) error
}

// command returns the command "secret" with its subcommands.
func (d secretCommands) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "secret",
		Short: "Keep secrets out of files: in the keychain, under names that rows refer to",
		Long: `Keep secrets out of files. In "env", "headers" and "auth" of a server's row, ${keychain:NAME}
stands for the value stored as NAME.

Values are sealed files beside the store, and the key that opens them is in the keychain of the
system. If no keychain answers, or with DRAWBRIDGE_KEYCHAIN=off, the key is a file beside them.`,
		Example: `  drawbridge secret set GITHUB_TOKEN             ask for the value, and do not show it
  op read op://work/gh/token | drawbridge secret set GITHUB_TOKEN
  drawbridge secret move github                  out of the row of a server
  drawbridge secret list`,
	}
	cmd.AddCommand(d.setCommand(), d.listCommand(), d.removeCommand(), d.moveCommand())
	return cmd
}

// withSecretArg returns cmd as a command that takes the name of one secret. The command checks the name and calls act
// with it.
func withSecretArg(cmd *cobra.Command, act func(ctx context.Context, name string) error) *cobra.Command {
	cmd.Args = exactArgs(1, "the name of one secret")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := admin.CheckSecretName(args[0]); err != nil {
			return err
		}
		return act(cmd.Context(), args[0])
	}
	return cmd
}

func (d secretCommands) setCommand() *cobra.Command {
	return withSecretArg(&cobra.Command{
		Use:   "set NAME",
		Short: "Store a value that you type or pass on standard input",
		Long: `Store a value, and replace an older one of that name. At a terminal the command asks for the value
and does not show it. Otherwise it reads all of standard input, without a line end behind it. The
value is never an argument, because other processes can see arguments.`,
		Example: "  drawbridge secret set GITHUB_TOKEN\n  pass show github | drawbridge secret set GITHUB_TOKEN",
	}, d.setSecret)
}

func (d secretCommands) setSecret(ctx context.Context, name string) error {
	service := d.Admin()
	if _, err := service.SecretProtection(); err != nil {
		return err // before the person types a value
	}
	value, err := d.readValue(ctx, name)
	if err != nil {
		return err
	}
	kept, err := service.StoreSecret(name, value)
	if err != nil {
		return err
	}
	with := "the keychain"
	if !kept.InKeychain {
		with = "a file"
		safetext.Fprintln(d.Err, kept.Text)
	}
	_, err = safetext.Fprintf(d.Out,
		"✓ %s is kept, sealed with a key in %s: write ${keychain:%s} for it in \"env\" or \"headers\"\n",
		name, with, name)
	return err
}

// readValue returns the value of a secret, which a person types at a terminal or a program writes to standard input.
func (d secretCommands) readValue(ctx context.Context, name string) ([]byte, error) {
	var value []byte
	if person, ok := StartDialogue(ctx, d.In, d.Err); ok {
		typed, err := person.AskHidden("Value of " + name + ": ")
		person.Close()
		if err != nil {
			fmt.Fprintln(d.Err)
			return nil, errors.New("nothing was kept: there was no answer")
		}
		value = []byte(typed)
	} else if IsTerminal(d.In) {
		return nil, admin.UserError(
			"the value is asked for on standard error, which is not a terminal: give it on standard input")
	} else {
		const most = 64 << 10
		all, err := io.ReadAll(io.LimitReader(d.In, most+3))
		if err != nil {
			return nil, fmt.Errorf("read the value from standard input: %w", err)
		}
		value = bytes.TrimSuffix(bytes.TrimSuffix(all, []byte("\n")), []byte("\r"))
	}
	return value, nil
}

func (d secretCommands) listCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the names of stored secrets, never the values",
		Args:    exactArgs(0, "no arguments"),
		RunE:    func(*cobra.Command, []string) error { return d.listSecrets(asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (d secretCommands) listSecrets(asJSON bool) error {
	all, err := d.Admin().Secrets()
	if err != nil {
		return err
	}
	if asJSON {
		if err := PrintJSON(d.Out, all); err != nil {
			return err
		}
		return all.Damage
	}
	if len(all.Secrets) == 0 {
		fmt.Fprintln(d.Out, "no secrets are kept (drawbridge secret set NAME keeps one)")
		return all.Damage
	}
	tw := NewTable(d.Out)
	fmt.Fprintln(tw, "NAME\tKEY IN\tCHANGED")
	for _, e := range all.Secrets {
		safetext.Fprintf(tw, "%s\t%s\t%s\n", e.Name, e.KeyLocation, e.Changed.Local().Format(time.DateTime))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	safetext.Fprintln(d.Err, all.Where)
	return all.Damage
}

func (d secretCommands) removeCommand() *cobra.Command {
	cmd := withSecretArg(&cobra.Command{
		Use:     "remove NAME",
		Aliases: []string{"rm"},
		Short:   "Remove a value",
		Example: "  drawbridge secret remove GITHUB_TOKEN",
	}, d.removeSecret)
	return cmd
}

func (d secretCommands) removeSecret(ctx context.Context, name string) error {
	users, err := d.Admin().RemoveSecret(ctx, name)
	if err != nil {
		return err
	}
	for _, u := range users {
		safetext.Fprintf(d.Err, "%s refers to it still, at %s\n", u.Server, u.Origin)
	}
	_, err = safetext.Fprintf(d.Out, "✓ %s is forgotten\n", name)
	return err
}

func (d secretCommands) moveCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "move SERVER",
		Short: "Move the secrets of a server's row out of the file",
		Long: `Move the secrets that stand in a server's row in plain text out of the file: values of "env" and
"headers", and the client's secret in "auth", that look like secrets. Each is stored before the
row is changed to refer to it. Secrets among the arguments, and in a url, cannot be moved.`,
		Example: "  drawbridge secret move github",
		Args:    exactArgs(1, "the name of one server"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := d.Admin().MoveSecrets(cmd.Context(), drawbridge.ServerID(args[0]))
			if err != nil {
				return err
			}
			return d.PrintChange(c, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
