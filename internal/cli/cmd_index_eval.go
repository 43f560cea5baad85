package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/spf13/cobra"
)

// evalCommand implements the command "index eval".
type evalCommand struct {
	Out, Err io.Writer
	// Dir is the working directory.
	Dir string
}

// command returns the command "index eval".
func (d evalCommand) command() *cobra.Command {
	o := evalFlags{}
	cmd := &cobra.Command{
		Use:   "eval --tools FILE --queries FILE [--run FILE]",
		Short: "Measure how well the tools of a file are found by the questions of another",
		Long: `Measure how well tools are found. Both files have a JSON object a line:

  tools    {"id", "server", "name", "title", "description", "inputSchema"}; id and name are required
  queries  {"id", "query", "kind", "gold": [ids], "groups": [[ids]]}; id and query are required

For each question the best tools are written to --run: {"id", "ranked": [ids], "ms"}. Tools that do not
match follow in the order of their ids. A question may name the tools that it needs: all of "gold", or
one of each group in "groups". For such questions the command prints how many needed tools were among the
first 5 and 20, nDCG@10, and how often the first tool was a needed one: in total and for each kind.

The arm "hybrid" ranks like "find_tools" without a configured embedding model; "lexical" ranks by words alone.`,
		Example: `  drawbridge index eval --tools tools.jsonl --queries queries.jsonl
  drawbridge index eval --tools tools.jsonl --queries queries.jsonl --run out.jsonl --arm lexical`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return d.run(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.tools, "tools", "", "the `FILE` of tools")
	flags.StringVar(&o.queries, "queries", "", "the `FILE` of questions")
	flags.StringVar(&o.run, "run", "", "write what is found to that `FILE`, an object a line")
	flags.StringVar(&o.arm, "arm", index.RankHybrid, "how to rank: "+strings.Join(index.Arms[:], " or "))
	flags.IntVar(&o.top, "top", index.MinTop, "how many tools a question is answered with, at least 20")
	flags.BoolVar(&o.asJSON, "json", false, "print one JSON object")
	return cmd
}

type evalFlags struct {
	tools, queries, run, arm string
	top                      int
	asJSON                   bool
}

// An evalReport is the result of "index eval".
type evalReport struct {
	Arm     string        `json:"arm"`
	Tools   int           `json:"tools"`
	Queries int           `json:"queries"`
	BuildMS float64       `json:"build_ms"`
	P50     float64       `json:"p50_ms"`
	P95     float64       `json:"p95_ms"`
	Scores  []index.Score `json:"scores,omitempty"`
}

func (d evalCommand) run(ctx context.Context, o evalFlags) error {
	switch {
	case o.tools == "" || o.queries == "":
		return admin.UserError(
			"--tools and --queries name the files to measure with (see \"drawbridge index eval --help\")")
	case o.top < index.MinTop:
		return admin.UserError(fmt.Sprintf("--top is at least %d", index.MinTop))
	case o.run != "" && (d.isSameFile(o.run, o.tools) || d.isSameFile(o.run, o.queries)):
		return admin.UserError("--run names a file that is read: the rankings would stand in its place")
	}
	tools, err := readEvalFile(d, o.tools, index.ReadEvalTools)
	if err != nil {
		return err
	}
	queries, err := readEvalFile(d, o.queries, index.ReadEvalQueries)
	if err != nil {
		return err
	}
	begun := time.Now()
	rank, err := index.NewRankFunc(o.arm, tools)
	if err != nil {
		return asUserError(err)
	}
	r := evalReport{Arm: o.arm, Tools: len(tools), Queries: len(queries),
		BuildMS: float64(time.Since(begun).Microseconds()) / 1000}
	if missing := unknownTools(queries, tools); len(missing) > 0 {
		safetext.Fprintf(d.Err, "%s that queries need %s not among the tools and cannot be found: %s\n",
			formatCount(len(missing), "tool"),
			map[bool]string{true: "is", false: "are"}[len(missing) == 1], safetext.Line(joinFirstIDs(missing)))
	}
	rows, err := index.RunQueries(ctx, rank, queries, o.top)
	if err != nil {
		return err
	}
	index.FillRankings(rows, tools, o.top)
	r.P50, r.P95 = index.LatencyPercentiles(rows)
	r.Scores = index.ScoreRankings(queries, rows)
	if err := d.writeRankings(o, rows); err != nil {
		return err
	}
	if o.asJSON {
		return PrintJSON(d.Out, r)
	}
	return d.printReport(r, o.run)
}

// readEvalFile opens a file of tools or queries, and returns the rows that read returns for it. The error is an
// admin.UserError if the file cannot be opened or a row is invalid.
func readEvalFile[T any](d evalCommand, name string, read func(string, io.Reader) ([]T, error)) ([]T, error) {
	f, err := os.Open(d.resolvePath(name))
	if err != nil {
		return nil, admin.UserError(err.Error())
	}
	defer f.Close()
	all, err := read(name, f)
	return all, asUserError(err)
}

// asUserError returns an *index.EvalError as an admin.UserError, and any other error unchanged.
func asUserError(err error) error {
	if mistake, ok := errors.AsType[*index.EvalError](err); ok {
		return admin.UserError(mistake.Error())
	}
	return err
}

// isSameFile reports whether two names refer to one file.
func (d evalCommand) isSameFile(one, other string) bool {
	a, err := os.Stat(d.resolvePath(one))
	if err != nil {
		return false
	}
	b, err := os.Stat(d.resolvePath(other))
	return err == nil && os.SameFile(a, b)
}

// unknownTools returns the IDs of the tools that queries need but that are not among tools. Each ID is returned once,
// in the order of the queries.
func unknownTools(queries []index.EvalQuery, tools []index.Document) (missing []string) {
	known := make(map[string]bool, len(tools))
	for _, t := range tools {
		known[t.ID] = true
	}
	for _, q := range queries {
		for _, id := range slices.Concat(q.NeededGroups()...) {
			if !known[id] {
				known[id] = true
				missing = append(missing, id)
			}
		}
	}
	return missing
}

// joinFirstIDs joins the first five IDs and adds the number of the others.
func joinFirstIDs(ids []string) string {
	const most = 5
	if len(ids) <= most {
		return strings.Join(ids, ", ")
	}
	return strings.Join(ids[:most], ", ") + fmt.Sprintf(" and %d more", len(ids)-most)
}

func (d evalCommand) resolvePath(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(d.Dir, name)
}

// writeRankings writes the rows to the file that --run names. Without --run it does nothing.
func (d evalCommand) writeRankings(o evalFlags, rows []index.Ranking) error {
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
	return os.WriteFile(d.resolvePath(o.run), b.Bytes(), 0o644)
}

// printReport prints the result of a run for a person.
func (d evalCommand) printReport(r evalReport, file string) error {
	safetext.Fprintf(d.Out, "%s: %s indexed in %.0f ms; %s asked, half of them within %.3f ms, 95 %% within %.3f ms\n",
		r.Arm, formatCount(r.Tools, "tool"), r.BuildMS, formatCount(r.Queries, "question"), r.P50, r.P95)
	if file != "" {
		safetext.Fprintf(d.Out, "%s written to %s\n", formatCount(r.Queries, "ranking"), file)
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
		safetext.Fprintf(tw, "%s\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t\n", safetext.Line(kind), s.Queries, 100*s.Recall5,
			100*s.Recall20, 100*s.NDCG10, 100*s.Hit1)
	}
	return tw.Flush()
}
