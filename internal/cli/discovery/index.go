package discovery

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/index"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/manners"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/terminal"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
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
	// The models run elsewhere, where there are any.
	gateway.ModelStatus
}

// Stats is the command "index stats".
func (d Desk) Stats() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Say how many cards there are to find, and what lists of them cost",
		Long: `Say how many cards there are to find, about how many tokens of a model the list of all of
them has and how many the short one, and which of the two a client is shown. Of a model of your own
it says how many cards have a vector, since when it is not asked because it does not answer,
and what went wrong last: as the hub has it, if one runs, else as it answers one question now.`,
		Args: manners.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return d.With(cmd.Context(), func(ctx context.Context, g *gateway.Gateway) error {
				d.Await(ctx, g)
				s := d.measure(ctx, g)
				if asJSON {
					return manners.PrintJSON(d.Out, s)
				}
				list := "all cards"
				if s.Short {
					list = "the short list"
				}
				safetext.Fprintf(d.Out, "%s of %s\n", manners.Count(s.Cards, "card"), manners.Count(s.Servers, "server"))
				safetext.Fprintf(d.Out, "all cards: about %d tokens; the short list: about %d\n", s.Tokens, s.ShortTokens)
				safetext.Fprintf(d.Out, "mode %s: a client is shown %s\n", s.Mode, list)
				safetext.Fprintf(d.Out, "indexed in %.1f ms\n", s.Millis)
				PrintModels(d.Out, s.ModelStatus)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// measure looks at what a client on standard input would be shown.
func (d Desk) measure(ctx context.Context, g *gateway.Gateway) stats {
	v := g.Deck().Finding(g.Owner())
	now := v.Stats()
	s := stats{
		Cards: now.Cards, Servers: now.Servers, Tokens: now.Tokens, ShortTokens: now.ShortTokens, Mode: string(now.Mode), Short: now.Short,
		Millis: millis(v.Time()),
	}
	var running bool
	if s.ModelStatus, running = d.Running(); !running {
		s.ModelStatus = d.ask(ctx, g)
	}
	return s
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// ask asks one question, to see whether the models answer in time.
func (d Desk) ask(ctx context.Context, g *gateway.Gateway) gateway.ModelStatus {
	v := g.Deck().Finding(g.Owner())
	d.settle(ctx, g, v.Build)
	if now := g.Models(); now.Embedding != nil && now.Embedding.Err == "" || now.Rerank != nil {
		v.Find(ctx, "read a file", 2)
	}
	return g.Models()
}

// settled is how long a person waits for vectors before a question: those that are kept come at once, others take their time.
const settled = 10 * time.Second

// settle waits for vectors, where a model embeds at all: until all texts have one, or something went wrong, or for a moment. Build
// has the model told of the texts.
func (d Desk) settle(ctx context.Context, g *gateway.Gateway, build func() int) {
	l := g.Library()
	if l == nil || build() == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, settled)
	defer cancel()
	_, _ = d.embed(ctx, l.Status)
}

// PrintModels shows how models are.
func PrintModels(w io.Writer, m gateway.ModelStatus) {
	if e := m.Embedding; e != nil {
		safetext.Fprintf(w, "model %s: %d of %s with a vector", safetext.Text(e.Model), e.Vectors, manners.Count(e.Texts, "text"))
		if e.Refused > 0 {
			safetext.Fprintf(w, ", %d refused", e.Refused)
		}
		fmt.Fprintln(w)
		printHealth(w, "the model that embeds", e.Away, e.At, e.Err)
	}
	if r := m.Rerank; r != nil {
		fmt.Fprintln(w, "a model puts the best in order")
		printHealth(w, "the model that judges", r.Away, r.At, r.Err)
	}
}

func printHealth(w io.Writer, who string, away, at time.Time, err string) {
	if !away.IsZero() {
		safetext.Fprintf(w, "%s is not asked since %s, because it does not answer\n", who, manners.LocalTime(away))
	}
	if err != "" {
		safetext.Fprintf(w, "%s: last error: %s (%s; drawbridge doctor)\n", who, safetext.Text(err), manners.LocalTime(at))
	}
}

// bar is a progress bar of so many cells.
func bar(done, all, cells int) string {
	full := 0
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

// Rebuild is the command "index rebuild".
func (d Desk) Rebuild() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "rebuild",
		Short: "Index all cards, and have the vectors made that are missing",
		Long: `Index all cards anew, and, where a model embeds them, have every vector made that is missing,
with a progress bar at a terminal. A vector is kept by the text that it is of: none is made
twice, so after a change of a description only what is new costs anything. When all are
there, those that the store has of models which are not set any more are dropped.`,
		Args: manners.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return d.With(cmd.Context(), func(ctx context.Context, g *gateway.Gateway) error {
				d.Await(ctx, g)
				return d.rebuild(ctx, g, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// rebuilt is what "index rebuild --json" prints.
type rebuilt struct {
	Cards  int     `json:"cards"`
	Millis float64 `json:"index_ms"`
	// Model embeds the texts of the cards; empty where none does.
	Model   string `json:"model,omitempty"`
	Vectors int    `json:"vectors,omitempty"`
	Refused int    `json:"refused,omitempty"`
	// Dropped is how many vectors there were of other models.
	Dropped int64 `json:"dropped,omitempty"`
}

func (d Desk) rebuild(ctx context.Context, g *gateway.Gateway, asJSON bool) error {
	v := g.Deck().Finding(g.Owner())
	r := rebuilt{Millis: millis(v.Time()), Cards: v.Build()}
	if l := g.Library(); l != nil && r.Cards > 0 {
		s, err := d.embed(ctx, l.Status)
		if err != nil {
			return err
		}
		r.Model, r.Vectors, r.Refused = s.Model, s.Vectors, s.Refused
	}
	var err error
	if r.Dropped, err = g.TidyVectors(ctx); err != nil {
		return err
	}
	if asJSON {
		return manners.PrintJSON(d.Out, r)
	}
	safetext.Fprintf(d.Out, "indexed %s in %.1f ms\n", manners.Count(r.Cards, "card"), r.Millis)
	if r.Model != "" {
		safetext.Fprintf(d.Out, "%s of the model %s\n", manners.Count(r.Vectors, "vector"), safetext.Text(r.Model))
	}
	if r.Refused > 0 {
		safetext.Fprintf(d.Out, "the model refused %s\n", manners.Count(r.Refused, "text"))
	}
	if r.Dropped > 0 {
		safetext.Fprintf(d.Out, "dropped %s of models that are not set any more\n", manners.Count(uint64(r.Dropped), "vector"))
	}
	return nil
}

// embedEvery is how often it is looked how far the vectors are.
const embedEvery = 100 * time.Millisecond

// embed waits until all texts have vectors, and shows how far they are. The error is what the model said last.
func (d Desk) embed(ctx context.Context, status func() index.LibraryStatus) (index.LibraryStatus, error) {
	tick := time.NewTicker(embedEvery)
	defer tick.Stop()
	defer d.Screen.Draw("")
	for {
		s := status()
		if s.Texts > 0 && s.Vectors+s.Refused >= s.Texts {
			return s, nil
		}
		if s.Err != "" {
			return s, fmt.Errorf("embed the cards: %d of %d: %s (drawbridge doctor)", s.Vectors, s.Texts, s.Err)
		}
		d.progress("embedding", s.Vectors+s.Refused, s.Texts)
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-tick.C:
		}
	}
}
