// Package evaluate is the command that measures how well tools are found: it asks the index the questions of a file.
package evaluate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/drawbridge-mcp/drawbridge/index"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/manners"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/roster"
	"github.com/spf13/cobra"
)

// A Desk is where the command is typed.
type Desk struct {
	Out, Err io.Writer
	// Dir is the working directory.
	Dir string
}

// Command is the command "eval".
func (d Desk) Command() *cobra.Command {
	o := options{}
	cmd := &cobra.Command{
		Use:   "eval --tools FILE --queries FILE [--run FILE]",
		Short: "Measure how well the tools of a file are found by the questions of another",
		Long: `Measure how well tools are found. Both files have a JSON object a line:

  tools    {"id", "server", "name", "title", "description", "inputSchema"}; id and name must be there
  queries  {"id", "query", "kind", "gold": [ids], "groups": [[ids]]}; id and query must be there

For each question the first of the tools are written to --run: {"id", "ranked": [ids], "ms"}. Tools that
nothing speaks for follow in the order of their ids. Where questions say which tools are needed (gold;
groups, where one tool may take another's place), it prints how many of them were found among the first 5
and 20, nDCG@10, and how often the first was a needed one: for all, and for each kind of question.

The arm "hybrid" is how "find_tools" ranks where no embeddings are configured, "lexical" is by words alone.`,
		Example: `  drawbridge index eval --tools tools.jsonl --queries queries.jsonl
  drawbridge index eval --tools tools.jsonl --queries queries.jsonl --run out.jsonl --arm lexical`,
		Args: manners.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return d.evaluate(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.tools, "tools", "", "the `FILE` of tools")
	flags.StringVar(&o.queries, "queries", "", "the `FILE` of questions")
	flags.StringVar(&o.run, "run", "", "write what is found to that `FILE`, an object a line")
	flags.StringVar(&o.arm, "arm", Hybrid, "how to rank: "+strings.Join(arms[:], " or "))
	flags.IntVar(&o.top, "top", Depth, "how many tools a question is answered with, at least 20")
	flags.BoolVar(&o.asJSON, "json", false, "print one JSON object")
	return cmd
}

type options struct {
	tools, queries, run, arm string
	top                      int
	asJSON                   bool
}

// The arms: by words alone, and as tools are found where no embeddings are configured.
const (
	Lexical = "lexical"
	Hybrid  = "hybrid"
)

var arms = [...]string{Lexical, Hybrid}

// Index makes an index of tools and gives how that arm of it ranks them.
func Index(arm string, tools []index.Document) (Rank, error) {
	var find func(ctx context.Context, question string, most int) []index.Hit
	switch arm {
	case Lexical:
		x := index.NewLexical()
		x.Update(tools, nil)
		find = func(_ context.Context, question string, most int) []index.Hit { return x.Search(question, most) }
	case Hybrid:
		x := index.New(index.Options{})
		x.Update(tools, nil)
		find = func(ctx context.Context, question string, most int) []index.Hit {
			return x.Find(ctx, index.Search{Text: question, Most: most})
		}
	default:
		return nil, roster.Mistake(fmt.Sprintf("there is no arm %s: it is %s", safetext.Quote(arm), strings.Join(arms[:], " or ")))
	}
	return func(ctx context.Context, question string, most int) []string {
		hits := find(ctx, question, most)
		ids := make([]string, len(hits))
		for i, h := range hits {
			ids[i] = h.ID
		}
		return ids
	}, nil
}

// A report is what a run came to.
type report struct {
	Arm     string  `json:"arm"`
	Tools   int     `json:"tools"`
	Queries int     `json:"queries"`
	BuildMS float64 `json:"build_ms"`
	P50     float64 `json:"p50_ms"`
	P95     float64 `json:"p95_ms"`
	Scores  []Score `json:"scores,omitempty"`
}

func (d Desk) evaluate(ctx context.Context, o options) error {
	switch {
	case o.tools == "" || o.queries == "":
		return roster.Mistake("--tools and --queries name the files to measure with (see \"drawbridge index eval --help\")")
	case o.top < Depth:
		return roster.Mistake(fmt.Sprintf("--top is at least %d", Depth))
	case o.run != "" && (d.same(o.run, o.tools) || d.same(o.run, o.queries)):
		return roster.Mistake("--run names a file that is read: the rankings would stand in its place")
	}
	tools, err := from(d, o.tools, ReadTools)
	if err != nil {
		return err
	}
	queries, err := from(d, o.queries, ReadQueries)
	if err != nil {
		return err
	}
	begun := time.Now()
	rank, err := Index(o.arm, tools)
	if err != nil {
		return err
	}
	r := report{Arm: o.arm, Tools: len(tools), Queries: len(queries), BuildMS: float64(time.Since(begun).Microseconds()) / 1000}
	if missing := unknown(queries, tools); len(missing) > 0 {
		safetext.Fprintf(d.Err, "%s of what is needed %s not among the tools, and can not be found: %s\n", manners.Count(len(missing), "tool"),
			map[bool]string{true: "is", false: "are"}[len(missing) == 1], safetext.Line(few(missing)))
	}
	rows, err := Run(ctx, rank, queries, o.top)
	if err != nil {
		return err
	}
	fill(rows, tools, o.top)
	r.P50, r.P95 = Latency(rows)
	r.Scores = Measure(queries, rows)
	if err := d.write(o, rows); err != nil {
		return err
	}
	if o.asJSON {
		return manners.PrintJSON(d.Out, r)
	}
	return d.print(r, o.run)
}

// from opens a file and reads it.
func from[T any](d Desk, name string, read func(string, io.Reader) ([]T, error)) ([]T, error) {
	f, err := os.Open(d.path(name))
	if err != nil {
		return nil, roster.Mistake(err.Error())
	}
	defer f.Close()
	return read(name, f)
}

// same says whether two names lead to one file.
func (d Desk) same(one, other string) bool {
	a, err := os.Stat(d.path(one))
	if err != nil {
		return false
	}
	b, err := os.Stat(d.path(other))
	return err == nil && os.SameFile(a, b)
}

// unknown gives the tools that questions need and that are not there, each once, in their order.
func unknown(queries []Query, tools []index.Document) (missing []string) {
	known := make(map[string]bool, len(tools))
	for _, t := range tools {
		known[t.ID] = true
	}
	for _, q := range queries {
		for _, id := range slices.Concat(q.needed()...) {
			if !known[id] {
				known[id] = true
				missing = append(missing, id)
			}
		}
	}
	return missing
}

// few names some of many.
func few(ids []string) string {
	const most = 5
	if len(ids) <= most {
		return strings.Join(ids, ", ")
	}
	return strings.Join(ids[:most], ", ") + fmt.Sprintf(" and %d more", len(ids)-most)
}

func (d Desk) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(d.Dir, name)
}

// fill appends tools that are not there yet, in the order of their ids, until a row has so many.
func fill(rows []Row, tools []index.Document, most int) {
	ids := make([]string, len(tools))
	for i, t := range tools {
		ids[i] = t.ID
	}
	slices.Sort(ids)
	for i := range rows {
		ranked := rows[i].Ranked
		for _, id := range ids {
			if len(ranked) >= most {
				break
			}
			if !slices.Contains(ranked, id) {
				ranked = append(ranked, id)
			}
		}
		rows[i].Ranked = ranked
	}
}

// write writes rows to the file that was named, if one was.
func (d Desk) write(o options, rows []Row) error {
	if o.run == "" {
		return nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, r := range rows {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return os.WriteFile(d.path(o.run), b.Bytes(), 0o644)
}

// print prints what a run came to for a person.
func (d Desk) print(r report, file string) error {
	safetext.Fprintf(d.Out, "%s: %s indexed in %.0f ms; %s asked, half of them within %.3f ms, 95 %% within %.3f ms\n",
		r.Arm, manners.Count(r.Tools, "tool"), r.BuildMS, manners.Count(r.Queries, "question"), r.P50, r.P95)
	if file != "" {
		safetext.Fprintf(d.Out, "%s written to %s\n", manners.Count(r.Queries, "ranking"), file)
	}
	if len(r.Scores) == 0 {
		return nil
	}
	tw := tabwriter.NewWriter(d.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "KIND\tQUESTIONS\tRECALL@5\tRECALL@20\tNDCG@10\tHIT@1\t")
	for _, s := range r.Scores {
		kind := s.Kind
		if kind == "" {
			kind = "all"
		}
		safetext.Fprintf(tw, "%s\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t\n", safetext.Line(kind), s.Queries, 100*s.Recall5, 100*s.Recall20, 100*s.NDCG10, 100*s.Hit1)
	}
	return tw.Flush()
}
