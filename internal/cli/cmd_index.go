package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

// indexStats is the JSON document of "index stats --json".
type indexStats struct {
	Cards       int    `json:"cards"`
	Servers     int    `json:"servers"`
	Tokens      int    `json:"tokens"`
	ShortTokens int    `json:"short_tokens"`
	Mode        string `json:"mode"`
	Short       bool   `json:"short"`
	// Millis is the time to index all tools, in milliseconds.
	Millis float64 `json:"index_ms"`
	// ModelStatus is empty if no embedding or rerank model is configured.
	gateway.ModelStatus
}

// statsCommand returns the command "index stats".
func (d toolIndexCommands) statsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Count the tools in the index and the tokens that lists of them cost",
		Long: `Count the tools in the index. The command also prints the approximate tokens of the full and
the short list, and which of the two a client sees. For an embedding or rerank model that you
configured, it prints how many tools have a vector, since when the model does not answer, and its
last error. If no hub runs, the command asks the models one question to learn this.`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return d.WithGateway(cmd.Context(), func(ctx context.Context, g *gateway.Gateway) error {
				d.AwaitNewServers(ctx, g)
				s := d.measureIndex(ctx, g)
				if asJSON {
					return PrintJSON(d.Out, s)
				}
				list := "all tools"
				if s.Short {
					list = "the short list"
				}
				safetext.Fprintf(d.Out, "%s of %s\n", formatCount(s.Cards, "tool"), formatCount(s.Servers, "server"))
				safetext.Fprintf(d.Out, "all tools: about %d tokens; the short list: about %d\n",
					s.Tokens, s.ShortTokens)
				safetext.Fprintf(d.Out, "mode %s: a client is shown %s\n", s.Mode, list)
				safetext.Fprintf(d.Out, "indexed in %.1f ms\n", s.Millis)
				printModelStatus(d.Out, s.ModelStatus)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// measureIndex counts the tools, and the tokens of the full list and the short list, that a client on standard input
// would receive. It also measures the time to index all tools and returns the status of the models.
func (d toolIndexCommands) measureIndex(ctx context.Context, g *gateway.Gateway) indexStats {
	v := g.Deck().SearchView(g.Owner())
	now := v.Stats()
	s := indexStats{
		Cards: now.Cards, Servers: now.Servers, Tokens: now.Tokens, ShortTokens: now.ShortTokens,
		Mode: string(now.Mode), Short: now.Short,
		Millis: milliseconds(v.MeasureIndexing()),
	}
	var running bool
	if s.ModelStatus, running = d.HubModelStatus(); !running {
		s.ModelStatus = d.probeModels(ctx, g)
	}
	return s
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// probeModels tests the configured models: it waits for the vectors of the tools, and runs one search if a model can be
// used. The returned status shows whether the models answered.
func (d toolIndexCommands) probeModels(ctx context.Context, g *gateway.Gateway) gateway.ModelStatus {
	v := g.Deck().SearchView(g.Owner())
	d.awaitVectors(ctx, g, v.BuildIndex)
	if now := g.ModelStatus(); now.Embedding != nil && now.Embedding.Err == "" || now.Rerank != nil {
		v.Find(ctx, "read a file", 2)
	}
	return g.ModelStatus()
}

// vectorsTimeout limits the wait for vectors before a search. Stored vectors load at once; missing vectors must be
// computed.
const vectorsTimeout = 10 * time.Second

// awaitVectors waits for the vectors of the embedding model, if one is configured. The wait ends when all texts have a
// vector, after an error, or after vectorsTimeout. build passes the texts to the model and returns the number of texts.
func (d toolIndexCommands) awaitVectors(ctx context.Context, g *gateway.Gateway, build func() int) {
	l := g.Library()
	if l == nil || build() == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, vectorsTimeout)
	defer cancel()
	_, _ = d.awaitEmbedding(ctx, l.Status)
}

// printModelStatus prints the status of models.
func printModelStatus(w io.Writer, m gateway.ModelStatus) {
	if e := m.Embedding; e != nil {
		safetext.Fprintf(w, "model %s: %d of %s with a vector", safetext.Text(e.Model), e.Vectors,
			formatCount(e.Texts, "text"))
		if e.Refused > 0 {
			safetext.Fprintf(w, ", %d refused", e.Refused)
		}
		fmt.Fprintln(w)
		printModelHealth(w, "the embedding model", e.Away, e.At, e.Err)
	}
	if r := m.Rerank; r != nil {
		fmt.Fprintln(w, "a rerank model orders the best tools")
		printModelHealth(w, "the rerank model", r.Away, r.At, r.Err)
	}
}

func printModelHealth(w io.Writer, who string, away, at time.Time, err string) {
	if !away.IsZero() {
		safetext.Fprintf(w, "%s is not asked since %s, because it does not answer\n", who, formatLocalTime(away))
	}
	if err != "" {
		safetext.Fprintf(w, "%s: last error: %s (%s; drawbridge doctor)\n", who, safetext.Text(err),
			formatLocalTime(at))
	}
}

// formatProgressBar returns a progress bar with the given number of cells, followed by "DONE of ALL".
func formatProgressBar(done, all, cells int) string {
	full := 0
	if all > 0 {
		full = done * cells / all
	}
	return "[" + strings.Repeat("=", full) + strings.Repeat(" ", cells-full) + fmt.Sprintf("] %d of %d", done, all)
}

// drawProgress shows a text and a progress bar in the status line, on a terminal only.
func (d toolIndexCommands) drawProgress(what string, done, all int) {
	if IsTerminal(d.Err) {
		d.StatusLine.SetStatus(what + " " + formatProgressBar(done, all, 30))
	}
}

// rebuildCommand returns the command "index rebuild".
func (d toolIndexCommands) rebuildCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "rebuild",
		Short: "Index all tools and create missing vectors",
		Long: `Index all tools again and, with an embedding model, create every missing vector. A terminal
shows the progress. A vector is stored under its text, so after a change of a description only
new texts cost anything. When all vectors exist, those of models that are not configured any
more are deleted.`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return d.WithGateway(cmd.Context(), func(ctx context.Context, g *gateway.Gateway) error {
				d.AwaitNewServers(ctx, g)
				return d.rebuildIndex(ctx, g, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// indexRebuildReport is the JSON document of "index rebuild --json".
type indexRebuildReport struct {
	Cards  int     `json:"cards"`
	Millis float64 `json:"index_ms"`
	// Model is the name of the embedding model; empty without one.
	Model   string `json:"model,omitempty"`
	Vectors int    `json:"vectors,omitempty"`
	Refused int    `json:"refused,omitempty"`
	// Dropped counts the deleted vectors of other models.
	Dropped int64 `json:"dropped,omitempty"`
}

func (d toolIndexCommands) rebuildIndex(ctx context.Context, g *gateway.Gateway, asJSON bool) error {
	v := g.Deck().SearchView(g.Owner())
	r := indexRebuildReport{Millis: milliseconds(v.MeasureIndexing()), Cards: v.BuildIndex()}
	if l := g.Library(); l != nil && r.Cards > 0 {
		s, err := d.awaitEmbedding(ctx, l.Status)
		if err != nil {
			return err
		}
		r.Model, r.Vectors, r.Refused = s.Model, s.Vectors, s.Refused
	}
	var err error
	if r.Dropped, err = g.PruneVectors(ctx); err != nil {
		return err
	}
	if asJSON {
		return PrintJSON(d.Out, r)
	}
	safetext.Fprintf(d.Out, "indexed %s in %.1f ms\n", formatCount(r.Cards, "tool"), r.Millis)
	if r.Model != "" {
		safetext.Fprintf(d.Out, "%s of the model %s\n", formatCount(r.Vectors, "vector"), safetext.Text(r.Model))
	}
	if r.Refused > 0 {
		safetext.Fprintf(d.Out, "the model refused %s\n", formatCount(r.Refused, "text"))
	}
	if r.Dropped > 0 {
		safetext.Fprintf(d.Out, "dropped %s of models that are not set any more\n",
			formatCount(uint64(r.Dropped), "vector"))
	}
	return nil
}

// embedPollInterval is the interval of checks for new vectors.
const embedPollInterval = 100 * time.Millisecond

// awaitEmbedding waits until the model has returned or refused a vector for each text, and shows the progress. The
// error is the last error of the model, or the error of ctx.
func (d toolIndexCommands) awaitEmbedding(ctx context.Context, status func() index.EmbeddingIndexStatus) (
	index.EmbeddingIndexStatus, error) {
	tick := time.NewTicker(embedPollInterval)
	defer tick.Stop()
	defer d.StatusLine.SetStatus("")
	for {
		s := status()
		if s.Texts > 0 && s.Vectors+s.Refused >= s.Texts {
			return s, nil
		}
		if s.Err != "" {
			return s, fmt.Errorf("embed the tools: %d of %d: %s (drawbridge doctor)", s.Vectors, s.Texts, s.Err)
		}
		d.drawProgress("embedding", s.Vectors+s.Refused, s.Texts)
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-tick.C:
		}
	}
}
