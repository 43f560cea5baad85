package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
	"github.com/spf13/cobra"
)

// clientTokenCommands implements the command "client" and its subcommands. Every field is required.
type clientTokenCommands struct {
	// Out receives results, and Err receives all other output.
	Out, Err io.Writer
	// Admin returns the service that stores the clients.
	Admin func() *admin.Service
	// ReloadHub makes a running hub check again which clients may connect.
	ReloadHub func() error
}

// command returns the command "client" with its subcommands.
func (d clientTokenCommands) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "client",
		Short: "Manage tokens for clients of the HTTP endpoint",
		Long: `Manage tokens for clients of the HTTP endpoint (drawbridge serve --http). Each token names the
servers that its client may use. Once one client has a token, every HTTP request needs one,
including from this machine.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(d.addCommand(), d.listCommand(), d.removeCommand())
	return cmd
}

func (d clientTokenCommands) addCommand() *cobra.Command {
	var asJSON bool
	var n admin.NewClient
	cmd := &cobra.Command{
		Use:   "add NAME --scope SCOPE",
		Short: "Give a client a token, which is shown once",
		Long: `Give a client a token, which is shown once: only its hash is kept. The client sends it in the
header "Authorization: Bearer TOKEN". A scope is mcp:NAME for the server NAME, mcp:* for all
servers, or * for everything. workspace:read, workspace:propose and workspace:memory are for the
workspace. workspace:author is for a client that writes there as you, and workspace:import for one
that imports files; * does not include these two.

What the client writes to the workspace has the origin that --origin names: agent-produced, imported
from files, or observed elsewhere. A call can name a less trusted origin. Imported and observed
content is a draft until you accept it. authored, which is for what you write yourself, needs the
scope workspace:author.`,
		Example: `  drawbridge client add ci --scope mcp:github --scope mcp:docs --expires 90d
  drawbridge client add laptop --scope 'mcp:*'
  drawbridge client add feed --scope workspace:propose --origin observed`,
		Args: exactArgs(1, "the name of one client"),
		RunE: func(cmd *cobra.Command, args []string) error {
			n.Name = args[0]
			c, err := admin.ParseNewClient(n, time.Now())
			if err != nil {
				return err
			}
			return d.createClient(cmd.Context(), c, asJSON)
		},
	}
	cmd.Flags().StringArrayVar(&n.Scopes, "scope", nil, "`SCOPE` that the client holds; may be repeated")
	cmd.Flags().StringVar(&n.Lifetime, "expires", "",
		"`TIME` after which the token ends, such as 90d or 12h (default: never)")
	cmd.Flags().StringVar(&n.Origin, "origin", string(workspace.AgentProduced),
		"`ORIGIN` of what the client writes to the workspace")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	for flag, words := range map[string][]string{"scope": admin.FixedScopes(), "origin": admin.ClientOrigins()} {
		if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic("complete --" + flag + ": " + err.Error()) // the flag is not defined above
		}
	}
	return cmd
}

// createClient adds a client. With asJSON it prints the client with its token as JSON. Otherwise it prints only the
// token on standard output, so that a script can read it, and a description on standard error.
func (d clientTokenCommands) createClient(ctx context.Context, c admin.Client, asJSON bool) error {
	c, first, err := d.Admin().AddClient(ctx, c)
	if err != nil {
		return err
	}
	if first {
		fmt.Fprintln(d.Err, "From now on every HTTP request needs a token, including from this machine.")
	}
	if asJSON {
		c.Expires = c.Expires.UTC()
		return PrintJSON(d.Out, c)
	}
	safetext.Fprintf(d.Err, "Client %q holds %s, %s.%s Its token is shown this once:\n", c.Name, c.ScopesText(),
		c.ExpiryText(), c.OriginText())
	_, err = safetext.Fprintln(d.Out, c.Token)
	return err
}

func (d clientTokenCommands) listCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the clients that have tokens, with the day of their last request",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := d.Admin().Clients(cmd.Context())
			switch {
			case err != nil:
				return err
			case asJSON:
				return PrintJSON(d.Out, all)
			case len(all) == 0:
				fmt.Fprintln(d.Err, "no client has a token (drawbridge client add NAME --scope SCOPE)")
				return nil
			}
			return printClients(d.Out, all, time.Now())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printClients(w io.Writer, all []admin.Client, now time.Time) error {
	tw := NewTable(w)
	fmt.Fprintln(tw, "CLIENT\tSCOPES\tORIGIN\tCREATED\tEXPIRES\tLAST USED")
	for _, c := range all {
		end := "never"
		switch {
		case !c.Expires.IsZero() && now.After(c.Expires):
			end = "expired " + formatLocalTime(c.Expires)
		case !c.Expires.IsZero():
			end = formatLocalTime(c.Expires)
		}
		used := c.Used
		if used == "" {
			used = "never"
		}
		safetext.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\n", c.Name, c.ScopesText(), c.Origin,
			formatLocalTime(c.Created), end, used)
	}
	return tw.Flush()
}

func (d clientTokenCommands) removeCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "remove NAME",
		Aliases: []string{"rm"},
		Short:   "Revoke a client's token and close its connections",
		Example: "  drawbridge client remove ci",
		Args:    exactArgs(1, "the name of one client"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := d.Admin().RemoveClient(cmd.Context(), args[0]); err != nil {
				return err
			}
			if err := d.ReloadHub(); err != nil {
				safetext.Fprintf(d.Err, "tell the hub: %v (it will notice within 30 seconds)\n", err)
			}
			_, err := safetext.Fprintf(d.Out, "Removed client %q\n", args[0])
			return err
		},
	}
}
