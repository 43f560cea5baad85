package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/trust"
	"github.com/spf13/cobra"
)

func (d shieldCommands) trustCommand() *cobra.Command {
	var reset, asJSON bool
	cmd := &cobra.Command{
		Use:   "trust [SERVER]",
		Short: "Show how far servers are trusted and why, or reset one",
		Long: `Show how far each server is trusted for how it behaved, from 0 to 1; with SERVER also the last
events that changed its score. A server under the threshold is quarantined: its tools are
unavailable until its score has recovered with time. --reset restores the full score, for a
server that you examined and trust. SERVER may also be one that is not configured any more.`,
		Example: `  drawbridge shield trust
  drawbridge shield trust github
  drawbridge shield trust github --reset`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			var server drawbridge.ServerID
			switch {
			case len(args) > 1:
				return admin.UserError("trust takes one server at most")
			case len(args) == 1:
				server = drawbridge.ServerID(args[0])
			case reset:
				return admin.UserError("--reset needs the name of a server")
			}
			all, err := d.Admin().ServerTrust(cmd.Context(), server, reset)
			if err != nil {
				return err
			}
			return d.printTrust(all, server, asJSON)
		},
	}
	cmd.Flags().BoolVar(&reset, "reset", false, "restore the full score of the server")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (d shieldCommands) printTrust(all []admin.ServerTrust, server drawbridge.ServerID, asJSON bool) error {
	if all == nil || len(all) == 0 && server == "" {
		return &drawbridge.Fault{
			Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: "no server is judged",
			Next: "drawbridge mcp list shows what is configured; [mcp.shield] enabled = true keeps accounts",
		}
	}
	if len(all) == 0 && server != "" {
		return &drawbridge.Fault{
			Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound,
			Step: fmt.Sprintf("server %q is not configured, or may not be mounted", string(server)),
			Next: "drawbridge mcp list",
		}
	}
	if asJSON {
		return PrintJSON(d.Out, newServerTrustJSON(all))
	}
	tw := NewTable(d.Out)
	paint := newScoreColours(d.Out, d.Env)
	fmt.Fprintln(tw, "NAME\t"+paint.header("TRUST")+"\tSETTING\tSTATE")
	for _, t := range all {
		state := "available"
		if t.Quarantined {
			state = "quarantined until " + formatLocalTime(t.Until)
		}
		safetext.Fprintf(tw, "%s\t%s\t%s\t%s\n", t.Server, safetext.Shown(paint.format(&t.Trust)), t.Level, state)
	}
	if err := tw.Flush(); err != nil || server == "" {
		return err
	}
	for _, t := range all {
		for _, e := range t.Reasons {
			safetext.Fprintf(d.Out, "%s  %s\n", formatLocalTime(e.At), safetext.Line(e.String()))
		}
	}
	return nil
}

// A serverTrustJSON is the trust in a server, as --json prints it. A trustReasonJSON is an event that changed the
// score.
type (
	serverTrustJSON struct {
		Server drawbridge.ServerID `json:"server"`
		drawbridge.Trust
		Reasons []trustReasonJSON `json:"reasons"`
	}
	trustReasonJSON struct {
		At     time.Time       `json:"at"`
		Kind   trust.EventKind `json:"kind"`
		Count  int             `json:"count,omitempty"`
		Amount float64         `json:"amount"`
		Why    string          `json:"why,omitempty"`
	}
)

func newServerTrustJSON(all []admin.ServerTrust) []serverTrustJSON {
	out := make([]serverTrustJSON, len(all))
	for i, t := range all {
		out[i] = serverTrustJSON{t.Server, t.Trust, []trustReasonJSON{}}
		for _, e := range t.Reasons {
			out[i].Reasons = append(out[i].Reasons, trustReasonJSON{e.At, e.Kind, e.Count, e.ScoreChange(), e.Why})
		}
	}
	return out
}

// scoreColours adds colours to scores: green from 0.7 on, yellow from 0.4 on, and red below. The zero value adds no
// colour.
type scoreColours struct{ on bool }

// newScoreColours returns the colours for an output. Scores are coloured only on a terminal, unless NO_COLOR is set
// (no-color.org).
func newScoreColours(out io.Writer, lookup func(string) (string, bool)) scoreColours {
	none, _ := lookup("NO_COLOR")
	return scoreColours{IsTerminal(out) && none == ""}
}

// header returns the header of a column of scores. It has the same number of escape bytes as a score, so that the table
// aligns both.
func (p scoreColours) header(text string) string { return p.colour("39", text) }

// format returns a score in per cent, rounded down; "-" for nil.
func (p scoreColours) format(t *drawbridge.Trust) string {
	if t == nil {
		return p.colour("39", "-")
	}
	text := t.Percent()
	switch {
	case t.Score >= 0.7:
		return p.colour("32", text)
	case t.Score >= 0.4:
		return p.colour("33", text)
	}
	return p.colour("31", text)
}

func (p scoreColours) colour(colour, text string) string {
	if !p.on {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}
