package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

// toolIndexCommands implements the commands on the tool index.
type toolIndexCommands struct {
	Out, Err io.Writer
	// WithGateway runs work with a gateway. AwaitNewServers starts the servers that were never listed and waits for
	// them.
	WithGateway     func(ctx context.Context, work func(context.Context, *gateway.Gateway) error) error
	AwaitNewServers func(ctx context.Context, g *gateway.Gateway)
	// Caller returns the caller of the command line.
	Caller func(g *gateway.Gateway) drawbridge.Caller
	// HubModelStatus returns the status of the hub's models. It returns false if no hub answers.
	HubModelStatus func() (gateway.ModelStatus, bool)
	// StatusLine is the status line of the terminal.
	StatusLine *StatusLineWriter
}

// A searchHit is a tool that a search found, as "tools search --json" prints it.
type searchHit struct {
	Name    drawbridge.CardName `json:"name"`
	Server  drawbridge.ServerID `json:"server,omitempty"`
	Summary string              `json:"summary"`
	Score   float64             `json:"score"`
	Why     string              `json:"why,omitempty"`
	Scores  *hitScores          `json:"scores,omitempty"`
}

// hitScores are the scores of one tool by search method and by field. Each score is relative to the best score that any
// tool has for that method or field, from 0 to 1. Words, Meaning and Far are the scores of the search methods: matching
// words, the built-in encoder, and an external model, which replaces the encoder. Name, Server, Description and
// Parameters are the scores of matching words in that field only.
type hitScores struct {
	Words       float64 `json:"words"`
	Meaning     float64 `json:"meaning"`
	Far         float64 `json:"far"`
	Name        float64 `json:"name"`
	Server      float64 `json:"server"`
	Description float64 `json:"description"`
	Parameters  float64 `json:"parameters"`
}

// searchCommand returns the command "tools search".
func (d toolIndexCommands) searchCommand() *cobra.Command {
	var top int
	var explain, asJSON bool
	cmd := &cobra.Command{
		Use:   "search QUERY...",
		Short: "Find tools that answer a question",
		Long: `Find tools that answer a question, best first, as a client finds them with find_tools.
If no tool matches the words, the command says so and shows the nearest tools. The score is
relative to the best match. --explain prints the score of each method, relative to its best
match: "words" matches words, "meaning" is the built-in encoder, and "far" is a model of your
own, which replaces the encoder. It also prints how each field of the tool matches by words
alone: its name, its server, its description and its parameters.`,
		Example: `  drawbridge tools search list open pull requests
  drawbridge tools search "read a file" --top 3 --explain`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return admin.UserError(fmt.Sprintf("%s takes a question (see %q)", cmd.CommandPath(),
					cmd.CommandPath()+" --help"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if top < 1 {
				return admin.UserError("--top must be a whole number above 0")
			}
			return d.WithGateway(cmd.Context(), func(ctx context.Context, g *gateway.Gateway) error {
				d.AwaitNewServers(ctx, g)
				all, matched := d.searchCards(ctx, g, d.Caller(g), strings.Join(args, " "), top, explain)
				if !matched && len(all) > 0 {
					fmt.Fprintln(d.Err, "no tool matches these words; these are the nearest")
				}
				if asJSON {
					return PrintJSON(d.Out, all)
				}
				return d.printHits(all, matched, explain)
			})
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&top, "top", 10, "how many tools to show")
	flags.BoolVar(&explain, "explain", false, "print the score by method and by field")
	flags.BoolVar(&asJSON, "json", false, "print them as JSON")
	return cmd
}

// searchCards returns at most top tools that match a query, best first. matched reports whether any of the tools
// contains a word of the query. With explain, each hit has its scores by search method and field.
func (d toolIndexCommands) searchCards(ctx context.Context, g *gateway.Gateway, who drawbridge.Caller, query string,
	top int, explain bool) (all []searchHit, matched bool) {
	all = []searchHit{}
	v := g.Deck().SearchView(who)
	d.awaitVectors(ctx, g, v.BuildIndex)
	hits, matched := v.Find(ctx, query, top)
	for _, h := range hits {
		all = append(all, searchHit{Name: h.Spec.Name, Server: h.Spec.Server, Summary: h.Spec.Summary,
			Score: h.Score, Why: h.Reason})
	}
	if explain {
		for i, e := range v.Explain(ctx, query, hits) {
			shares := hitScores(e)
			all[i].Scores = &shares
		}
	}
	return all, matched
}

// printHits prints the tools of a search. If no tool matched a word, it prints "-" for each score, because scores are
// relative to the best match.
func (d toolIndexCommands) printHits(all []searchHit, matched, explain bool) error {
	if len(all) == 0 {
		return nil
	}
	if explain {
		return explainedHitsPrinter(all).print(d.Out, d.Err, all, false)
	}
	return listPrinter[searchHit]{Header: "SCORE\tTOOL\tSUMMARY", Columns: func(f searchHit) string {
		score := "-"
		if matched {
			score = fmt.Sprintf("%.3f", f.Score)
		}
		return safetext.Sprintf("%s\t%s\t%s", score, f.Name, safetext.Truncate(safetext.OneLine(f.Summary), 80,
			safetext.Runes, "…"))
	}}.print(d.Out, d.Err, all, false)
}

// explainedHitsPrinter returns a printer of tools with the scores of each method. One column has the score of the
// built-in encoder, or of the configured embedding model that replaces it.
func explainedHitsPrinter(all []searchHit) listPrinter[searchHit] {
	arm := "MEANING"
	if slices.ContainsFunc(all, func(f searchHit) bool { return f.Scores.Far > 0 }) {
		arm = "FAR"
	}
	return listPrinter[searchHit]{
		Header: "SCORE\tTOOL\tWORDS\t" + arm + "\tNAME\tSERVER\tDESCRIPTION\tPARAMETERS\tWHY",
		Columns: func(f searchHit) string {
			s := f.Scores
			line := safetext.Sprintf("%.3f\t%s", f.Score, f.Name)
			for _, share := range []float64{s.Words, s.Meaning + s.Far, s.Name, s.Server, s.Description, s.Parameters} {
				if share == 0 {
					line += "\t-"
				} else {
					line += fmt.Sprintf("\t%.2f", share)
				}
			}
			return line + "\t" + safetext.Line(f.Why)
		},
	}
}
