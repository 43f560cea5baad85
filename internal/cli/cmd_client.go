package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/spf13/cobra"
)

// A clientCommands is where clients are given tokens. Every field is needed.
type clientCommands struct {
	// Out is for what was asked for, Err for everything else.
	Out, Err io.Writer
	// OpenIfExists opens the store, nil where there is none yet; Make makes it then.
	OpenIfExists, OpenOrCreate func(ctx context.Context) (*store.DB, error)
	// ReloadHub has a running hub look at who may still come in. The error is for a hub that cannot be told.
	ReloadHub func() error
	// AdminRecorder has on record who was let in, and who is not any more.
	AdminRecorder gateway.AdminRecorder
}

// command is "client", with the commands below it.
func (d clientCommands) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "client",
		Short: "Give clients of the HTTP door tokens of their own",
		Long: `Give clients of the HTTP door (drawbridge serve --http) tokens of their own, each with the
servers that it may use. As soon as there is one, whoever comes by HTTP needs a token, also
from this machine.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(d.addCommand(), d.listCommand(), d.removeCommand())
	return cmd
}

// clientJSON is one as --json shows it.
type clientJSON struct {
	Name    string             `json:"name"`
	Scopes  []drawbridge.Scope `json:"scopes"`
	Created time.Time          `json:"created,omitzero"`
	Expires time.Time          `json:"expires,omitzero"`
	// Used is a day, as 2006-01-02; empty is never.
	Used string `json:"used,omitempty"`
	// Token is there when it was just made, and never again.
	Token string `json:"token,omitempty"`
}

func (d clientCommands) addCommand() *cobra.Command {
	var asJSON bool
	var scopes []string
	var expires string
	cmd := &cobra.Command{
		Use:   "add NAME --scope SCOPE",
		Short: "Give a client a token, which is shown once",
		Long: `Give a client a token, which is shown once: only its hash is kept. The client sends it in the
header "Authorization: Bearer TOKEN". A scope is mcp:NAME for the server NAME, mcp:* for all
servers, or * for everything.`,
		Example: `  drawbridge client add ci --scope mcp:github --scope mcp:docs --expires 90d
  drawbridge client add laptop --scope 'mcp:*'`,
		Args: exactArgs(1, "the name of one client"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := parseNewClient(args[0], scopes, expires, time.Now())
			if err != nil {
				return err
			}
			return d.createClient(cmd.Context(), c, asJSON)
		},
	}
	cmd.Flags().StringArrayVar(&scopes, "scope", nil, "`SCOPE` that the client holds; repeats")
	cmd.Flags().StringVar(&expires, "expires", "",
		"`TIME` after which the token ends, such as 90d or 12h (default: never)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// parseNewClient checks what a person wrote of a client.
func parseNewClient(name string, scopes []string, expires string, now time.Time) (store.Client, error) {
	c := store.Client{Name: name}
	if len(scopes) == 0 {
		return c, admin.UserError(
			"client add takes at least one --scope: mcp:NAME for the server NAME, or 'mcp:*' for all")
	}
	for _, text := range scopes {
		server, ok := strings.CutPrefix(text, "mcp:")
		if text != "*" && (!ok || server != "*" && drawbridge.ServerID(strings.TrimSuffix(server,
			"*")).Validate() != nil) {
			return c, admin.UserError(
				fmt.Sprintf("%q is no scope (mcp:NAME is the server NAME, mcp:* all of them, * everything)", text))
		}
		c.Scopes = append(c.Scopes, drawbridge.Scope(text))
	}
	if expires == "" {
		return c, nil
	}
	d, err := parseLifetime(expires)
	if err != nil || d <= 0 {
		return c, admin.UserError(fmt.Sprintf("--expires %s: want a time such as 90d or 12h", expires))
	}
	c.Expires = now.Add(d)
	return c, nil
}

// parseLifetime reads a time that may be in days.
func parseLifetime(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(text)
}

// createClient keeps a client, and shows its token: alone on standard output, where a script takes it from.
func (d clientCommands) createClient(ctx context.Context, c store.Client, asJSON bool) error {
	db, err := d.OpenOrCreate(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	first, err := db.HasClients(ctx)
	if err != nil {
		return err
	}
	token, hash := gateway.NewClientToken()
	act := gateway.AdminAction{Command: "client add", Subject: c.Name, Detail: joinScopes(c.Scopes) + ", " +
		formatExpiry(c.Expires)}
	if err := d.AdminRecorder.Run(act, func() error { return db.AddClient(ctx, c, hash) }); err != nil {
		return err
	}
	if !first {
		fmt.Fprintln(d.Err, "From now on everybody needs a token who comes by HTTP, also from this machine.")
	}
	if asJSON {
		return PrintJSON(d.Out, clientJSON{Name: c.Name, Scopes: c.Scopes, Expires: c.Expires.UTC(),
			Token: token.Reveal()})
	}
	safetext.Fprintf(d.Err, "Client %q holds %s, %s. Its token is shown this once:\n", c.Name, joinScopes(c.Scopes),
		formatExpiry(c.Expires))
	_, err = safetext.Fprintln(d.Out, token.Reveal())
	return err
}

func joinScopes(scopes []drawbridge.Scope) string {
	words := make([]string, len(scopes))
	for i, s := range scopes {
		words[i] = string(s)
	}
	return strings.Join(words, ", ")
}

// formatExpiry says until when a token counts.
func formatExpiry(expires time.Time) string {
	if expires.IsZero() {
		return "without an end"
	}
	return "until " + formatLocalTime(expires)
}

func (d clientCommands) listCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show the clients that have tokens, and when they came last",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := d.readClients(cmd.Context())
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

// readClients reads the clients, of which there are none where there is no store.
func (d clientCommands) readClients(ctx context.Context) ([]clientJSON, error) {
	all := []clientJSON{}
	db, err := d.OpenIfExists(ctx)
	if err != nil || db == nil {
		return all, err
	}
	defer db.Close()
	kept, err := db.Clients(ctx)
	for _, c := range kept {
		one := clientJSON{Name: c.Name, Scopes: c.Scopes, Created: c.Created, Expires: c.Expires}
		if !c.Used.IsZero() {
			one.Used = c.Used.Format(time.DateOnly)
		}
		all = append(all, one)
	}
	return all, err
}

func printClients(w io.Writer, all []clientJSON, now time.Time) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "CLIENT\tSCOPES\tCREATED\tEXPIRES\tLAST USED")
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
		safetext.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", c.Name, joinScopes(c.Scopes),
			formatLocalTime(c.Created), end, used)
	}
	return tw.Flush()
}

func (d clientCommands) removeCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "remove NAME",
		Aliases: []string{"rm"},
		Short:   "Take a client's token back, and end what it has open",
		Example: "  drawbridge client remove ci",
		Args:    exactArgs(1, "the name of one client"),
		RunE: func(cmd *cobra.Command, args []string) error {
			db, err := d.OpenIfExists(cmd.Context())
			switch {
			case err != nil:
				return err
			case db == nil:
				return clientNotFoundError(args[0])
			}
			defer db.Close()
			err = d.AdminRecorder.Run(gateway.AdminAction{Command: "client remove", Subject: args[0]}, func() error {
				removed, err := db.RemoveClient(cmd.Context(), args[0])
				if err == nil && !removed {
					return clientNotFoundError(args[0])
				}
				return err
			})
			if err != nil {
				return err
			}
			if err := d.ReloadHub(); err != nil {
				safetext.Fprintf(d.Err, "the hub was not told, and notices within half a minute: %v\n", err)
			}
			_, err = safetext.Fprintf(d.Out, "Removed client %q\n", args[0])
			return err
		},
	}
}

func clientNotFoundError(name string) error {
	return fmt.Errorf("there is no client %q (drawbridge client list)", name)
}
