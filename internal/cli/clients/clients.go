// Package clients has the commands about clients of the HTTP door that have tokens of their own.
//
// It promises that a token is shown when it is made and never again, and that nobody keeps it: the store has its hash.
package clients

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
	"github.com/drawbridge-mcp/drawbridge/internal/cli/manners"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/roster"
	"github.com/drawbridge-mcp/drawbridge/store"
	"github.com/spf13/cobra"
)

// A Desk is where clients are given tokens. Every field is needed.
type Desk struct {
	// Out is for what was asked for, Err for everything else.
	Out, Err io.Writer
	// Open opens the store, nil where there is none yet; Make makes it then.
	Open, Make func(ctx context.Context) (*store.DB, error)
	// Tell has a running hub look at who may still come in. The error is for a hub that cannot be told.
	Tell func() error
	// Clerk has on record who was let in, and who is not any more.
	Clerk gateway.Clerk
}

// Command is "client", with the commands below it.
func (d Desk) Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "client",
		Short: "Give clients of the HTTP door tokens of their own",
		Long: `Give clients of the HTTP door (drawbridge serve --http) tokens of their own, each with the
servers that it may use. As soon as there is one, whoever comes by HTTP needs a token, also
from this machine.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(d.add(), d.list(), d.remove())
	return cmd
}

// client is one as --json shows it.
type client struct {
	Name    string             `json:"name"`
	Scopes  []drawbridge.Scope `json:"scopes"`
	Created time.Time          `json:"created,omitzero"`
	Expires time.Time          `json:"expires,omitzero"`
	// Used is a day, as 2006-01-02; empty is never.
	Used string `json:"used,omitempty"`
	// Token is there when it was just made, and never again.
	Token string `json:"token,omitempty"`
}

func (d Desk) add() *cobra.Command {
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
		Args: manners.Exactly(1, "the name of one client"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := newClient(args[0], scopes, expires, time.Now())
			if err != nil {
				return err
			}
			return d.give(cmd.Context(), c, asJSON)
		},
	}
	cmd.Flags().StringArrayVar(&scopes, "scope", nil, "`SCOPE` that the client holds; repeats")
	cmd.Flags().StringVar(&expires, "expires", "", "`TIME` after which the token ends, such as 90d or 12h (default: never)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// newClient checks what a person wrote of a client.
func newClient(name string, scopes []string, expires string, now time.Time) (store.Client, error) {
	c := store.Client{Name: name}
	if len(scopes) == 0 {
		return c, roster.Mistake("client add takes at least one --scope: mcp:NAME for the server NAME, or 'mcp:*' for all")
	}
	for _, text := range scopes {
		server, ok := strings.CutPrefix(text, "mcp:")
		if text != "*" && (!ok || server != "*" && drawbridge.ServerID(strings.TrimSuffix(server, "*")).Valid() != nil) {
			return c, roster.Mistake(fmt.Sprintf("%q is no scope (mcp:NAME is the server NAME, mcp:* all of them, * everything)", text))
		}
		c.Scopes = append(c.Scopes, drawbridge.Scope(text))
	}
	if expires == "" {
		return c, nil
	}
	d, err := lifetime(expires)
	if err != nil || d <= 0 {
		return c, roster.Mistake(fmt.Sprintf("--expires %s: want a time such as 90d or 12h", expires))
	}
	c.Expires = now.Add(d)
	return c, nil
}

// lifetime reads a time that may be in days.
func lifetime(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(text)
}

// give keeps a client, and shows its token: alone on standard output, where a script takes it from.
func (d Desk) give(ctx context.Context, c store.Client, asJSON bool) error {
	db, err := d.Make(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	first, err := db.HasClients(ctx)
	if err != nil {
		return err
	}
	token, hash := gateway.NewClientToken()
	act := gateway.Act{Command: "client add", On: c.Name, Detail: scopeList(c.Scopes) + ", " + ends(c.Expires)}
	if err := d.Clerk.Do(act, func() error { return db.AddClient(ctx, c, hash) }); err != nil {
		return err
	}
	if !first {
		fmt.Fprintln(d.Err, "From now on everybody needs a token who comes by HTTP, also from this machine.")
	}
	if asJSON {
		return manners.PrintJSON(d.Out, client{Name: c.Name, Scopes: c.Scopes, Expires: c.Expires.UTC(), Token: token.Reveal()})
	}
	safetext.Fprintf(d.Err, "Client %q holds %s, %s. Its token is shown this once:\n", c.Name, scopeList(c.Scopes), ends(c.Expires))
	_, err = safetext.Fprintln(d.Out, token.Reveal())
	return err
}

func scopeList(scopes []drawbridge.Scope) string {
	words := make([]string, len(scopes))
	for i, s := range scopes {
		words[i] = string(s)
	}
	return strings.Join(words, ", ")
}

// ends says until when a token counts.
func ends(expires time.Time) string {
	if expires.IsZero() {
		return "without an end"
	}
	return "until " + manners.LocalTime(expires)
}

func (d Desk) list() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show the clients that have tokens, and when they came last",
		Args:  manners.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := d.all(cmd.Context())
			switch {
			case err != nil:
				return err
			case asJSON:
				return manners.PrintJSON(d.Out, all)
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

// all reads the clients, of which there are none where there is no store.
func (d Desk) all(ctx context.Context) ([]client, error) {
	all := []client{}
	db, err := d.Open(ctx)
	if err != nil || db == nil {
		return all, err
	}
	defer db.Close()
	kept, err := db.Clients(ctx)
	for _, c := range kept {
		one := client{Name: c.Name, Scopes: c.Scopes, Created: c.Created, Expires: c.Expires}
		if !c.Used.IsZero() {
			one.Used = c.Used.Format(time.DateOnly)
		}
		all = append(all, one)
	}
	return all, err
}

func printClients(w io.Writer, all []client, now time.Time) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "CLIENT\tSCOPES\tCREATED\tEXPIRES\tLAST USED")
	for _, c := range all {
		end := "never"
		switch {
		case !c.Expires.IsZero() && now.After(c.Expires):
			end = "expired " + manners.LocalTime(c.Expires)
		case !c.Expires.IsZero():
			end = manners.LocalTime(c.Expires)
		}
		used := c.Used
		if used == "" {
			used = "never"
		}
		safetext.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", c.Name, scopeList(c.Scopes), manners.LocalTime(c.Created), end, used)
	}
	return tw.Flush()
}

func (d Desk) remove() *cobra.Command {
	return &cobra.Command{
		Use:     "remove NAME",
		Aliases: []string{"rm"},
		Short:   "Take a client's token back, and end what it has open",
		Example: "  drawbridge client remove ci",
		Args:    manners.Exactly(1, "the name of one client"),
		RunE: func(cmd *cobra.Command, args []string) error {
			db, err := d.Open(cmd.Context())
			switch {
			case err != nil:
				return err
			case db == nil:
				return noClient(args[0])
			}
			defer db.Close()
			err = d.Clerk.Do(gateway.Act{Command: "client remove", On: args[0]}, func() error {
				removed, err := db.RemoveClient(cmd.Context(), args[0])
				if err == nil && !removed {
					return noClient(args[0])
				}
				return err
			})
			if err != nil {
				return err
			}
			if err := d.Tell(); err != nil {
				safetext.Fprintf(d.Err, "the hub was not told, and notices within half a minute: %v\n", err)
			}
			_, err = safetext.Fprintf(d.Out, "Removed client %q\n", args[0])
			return err
		},
	}
}

func noClient(name string) error {
	return fmt.Errorf("there is no client %q (drawbridge client list)", name)
}
