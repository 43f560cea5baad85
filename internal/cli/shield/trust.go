package shield

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/manners"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/terminal"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/roster"
	"github.com/drawbridge-mcp/drawbridge/store"
	"github.com/drawbridge-mcp/drawbridge/trust"
	"github.com/spf13/cobra"
)

// Trusted is how far a server is trusted, and for which reasons, the newest first.
type Trusted struct {
	Server drawbridge.ServerID
	drawbridge.Trust
	Reasons []trust.Event
}

// TrustOf says how far the server of a row is trusted; nil where nobody keeps an account of it.
func TrustOf(book *gateway.TrustBook, row config.Server) *drawbridge.Trust {
	if book == nil {
		return nil
	}
	t, _ := book.Of(row)
	return &t
}

// ReadTrust gives how far each server that may be mounted is trusted, nil where nobody keeps an account. The one that is named is
// forgiven first, and reload has running gateways hear of it.
func ReadTrust(ctx context.Context, db *store.DB, set config.Set, forgive drawbridge.ServerID, reload func(context.Context) (string, error), clerk gateway.Clerk) ([]Trusted, error) {
	book, err := gateway.ReadTrust(ctx, db, set.Settings)
	if book == nil || err != nil {
		return nil, err
	}
	var all []Trusted
	for _, row := range set.Mountable() {
		if row.ID == forgive {
			act := gateway.Act{Command: "shield trust --reset", Server: row.ID}
			if err := clerk.Do(act, func() error { return book.Reset(ctx, row) }); err != nil {
				return nil, err
			}
			if _, err := reload(ctx); err != nil {
				return nil, fmt.Errorf("tell the hub: %w", err)
			}
		}
		t, reasons := book.Of(row)
		all = append(all, Trusted{Server: row.ID, Trust: t, Reasons: reasons})
	}
	return all, nil
}

func (d Desk) trustCommand() *cobra.Command {
	var reset, asJSON bool
	cmd := &cobra.Command{
		Use:   "trust [SERVER]",
		Short: "Show how far servers are trusted and why, or forgive one",
		Long: `Show how far each server is trusted for how it behaved, from 0 to 1; with SERVER also the last
things that moved its score. A server under the threshold is quarantined: its cards leave the
deck until time has brought enough of the score back. --reset forgives it everything: for a
server that was looked at, and is well.`,
		Example: `  drawbridge shield trust
  drawbridge shield trust github
  drawbridge shield trust github --reset`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			var server, forgive drawbridge.ServerID
			switch {
			case len(args) > 1:
				return roster.Mistake("trust takes one server at most")
			case len(args) == 1:
				server = drawbridge.ServerID(args[0])
			case reset:
				return roster.Mistake("--reset needs the server that is forgiven")
			}
			if reset {
				forgive = server
			}
			all, err := d.Trust(cmd.Context(), forgive)
			if err != nil {
				return err
			}
			return d.printTrust(all, server, asJSON)
		},
	}
	cmd.Flags().BoolVar(&reset, "reset", false, "forgive the server everything that was held against it")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (d Desk) printTrust(all []Trusted, server drawbridge.ServerID, asJSON bool) error {
	if all == nil {
		return &drawbridge.Fault{
			Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: "no server is judged",
			Next: "drawbridge mcp list shows what is configured; [mcp.shield] enabled = true keeps accounts",
		}
	}
	if server != "" {
		var one []Trusted
		for _, t := range all {
			if t.Server == server {
				one = append(one, t)
			}
		}
		if one == nil {
			return &drawbridge.Fault{
				Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound,
				Step: fmt.Sprintf("server %q is not configured, or may not be mounted", string(server)), Next: "drawbridge mcp list",
			}
		}
		all = one
	}
	if asJSON {
		return manners.PrintJSON(d.Out, documents(all))
	}
	tw := tabwriter.NewWriter(d.Out, 0, 0, 2, ' ', 0)
	paint := PaintFor(d.Out, d.Env)
	fmt.Fprintln(tw, "NAME\t"+paint.Head("TRUST")+"\tLEVEL\tSTATE")
	for _, t := range all {
		state := "on the deck"
		if t.Quarantined {
			state = "quarantined until " + manners.LocalTime(t.Until)
		}
		safetext.Fprintf(tw, "%s\t%s\t%s\t%s\n", t.Server, safetext.Shown(paint.Score(&t.Trust)), t.Level, state)
	}
	if err := tw.Flush(); err != nil || server == "" {
		return err
	}
	for _, e := range all[0].Reasons {
		safetext.Fprintf(d.Out, "%s  %s\n", manners.LocalTime(e.At), safetext.Line(e.String()))
	}
	return nil
}

// A document is what --json prints of a server, a reason what it prints of an event.
type (
	document struct {
		Server drawbridge.ServerID `json:"server"`
		drawbridge.Trust
		Reasons []reason `json:"reasons"`
	}
	reason struct {
		At     time.Time  `json:"at"`
		Kind   trust.Kind `json:"kind"`
		Count  int        `json:"count,omitempty"`
		Amount float64    `json:"amount"`
		Why    string     `json:"why,omitempty"`
	}
)

func documents(all []Trusted) []document {
	out := make([]document, len(all))
	for i, t := range all {
		out[i] = document{t.Server, t.Trust, []reason{}}
		for _, e := range t.Reasons {
			out[i].Reasons = append(out[i].Reasons, reason{e.At, e.Kind, e.Count, e.Amount(), e.Why})
		}
	}
	return out
}

// A Paint colours scores: green from 0.7 on, yellow from 0.4 on, else red. The zero value does not.
type Paint struct{ on bool }

// PaintFor is how scores look in an output: in colours on a terminal, unless NO_COLOR is set (no-color.org).
func PaintFor(out io.Writer, lookup func(string) (string, bool)) Paint {
	none, _ := lookup("NO_COLOR")
	return Paint{terminal.Is(out) && none == ""}
}

// Head is the head of a column of scores: as many bytes longer than it looks as they are.
func (p Paint) Head(text string) string { return p.in("39", text) }

// Score shows a score with two places; nil is "-".
func (p Paint) Score(t *drawbridge.Trust) string {
	switch {
	case t == nil:
		return p.in("39", "-")
	case t.Score >= 0.7:
		return p.in("32", fmt.Sprintf("%.2f", t.Score))
	case t.Score >= 0.4:
		return p.in("33", fmt.Sprintf("%.2f", t.Score))
	}
	return p.in("31", fmt.Sprintf("%.2f", t.Score))
}

func (p Paint) in(colour, text string) string {
	if !p.on {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}
