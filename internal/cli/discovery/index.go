package discovery

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/manners"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/terminal"
	"github.com/spf13/cobra"
)

// stats are what "index stats --json" prints.
type stats struct {
	Cards       int    `json:"cards"`
	Servers     int    `json:"servers"`
	Tokens      int    `json:"tokens"`
	ShortTokens int    `json:"short_tokens"`
	Mode        string `json:"mode"`
	Short       bool   `json:"short"`
	// Millis is how long it took to index all cards.
	Millis float64 `json:"index_ms"`
}

// Stats is the command "index stats".
func (d Desk) Stats() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Say how many cards there are to find, and what lists of them cost",
		Long: `Say how many cards there are to find, about how many tokens of a model the list of all of
them has and how many the short one, and which of the two a client is shown.`,
		Args: manners.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return d.With(cmd.Context(), func(ctx context.Context, g *gateway.Gateway) error {
				d.Await(ctx, g)
				s := measure(g)
				if asJSON {
					return manners.PrintJSON(d.Out, s)
				}
				list := "all cards"
				if s.Short {
					list = "the short list"
				}
				fmt.Fprintf(d.Out, "%s of %s\n", manners.Count(s.Cards, "card"), manners.Count(s.Servers, "server"))
				fmt.Fprintf(d.Out, "all cards: about %d tokens; the short list: about %d\n", s.Tokens, s.ShortTokens)
				fmt.Fprintf(d.Out, "mode %s: a client is shown %s\n", s.Mode, list)
				fmt.Fprintf(d.Out, "indexed in %.1f ms\n", s.Millis)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// measure looks at what a client on standard input would be shown.
func measure(g *gateway.Gateway) stats {
	v := g.Deck().Finding(g.Owner())
	s := v.Stats()
	start := time.Now()
	v.Build()
	return stats{s.Cards, s.Servers, s.Tokens, s.ShortTokens, string(s.Mode), s.Short, float64(time.Since(start).Microseconds()) / 1000}
}

// bar is a progress bar of so many cells.
func bar(done, all, cells int) string {
	full := cells
	if all > 0 {
		full = done * cells / all
	}
	return "[" + strings.Repeat("=", full) + strings.Repeat(" ", cells-full) + fmt.Sprintf("] %d of %d", done, all)
}

// progress shows how far work is, on a terminal only.
func (d Desk) progress(what string, done, all int) {
	if terminal.Is(d.Err) {
		d.Screen.Draw(what + " " + bar(done, all, 30))
	}
}
