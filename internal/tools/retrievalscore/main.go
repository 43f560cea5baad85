// Command retrievalscore measures the quality and speed of the search for tools: go run
// ./internal/tools/retrievalscore -data DIR.
//
// Each directory in DIR is a corpus, with files tools.jsonl and queries.jsonl in the format of "drawbridge index
// eval". The command prints a report in Markdown. The report contains the scores and durations of each arm of package
// index, which is a way of ranking. It also contains the scores of two other rankings of the same tools, for
// comparison. The texts in the files are used only as data.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

// A corpus contains tools, and questions together with the IDs of the tools that each question needs.
type corpus struct {
	name    string
	tools   []index.Document
	queries []index.EvalQuery
}

// The names of the two rankings with which the arms of package index are compared. The variable arms contains all
// four rankings in the order of the report.
const (
	plainBM25 = "plain BM25"
	sqliteFTS = "SQLite FTS5"
)

var arms = []string{plainBM25, sqliteFTS, index.RankLexical, index.RankHybrid}

func main() {
	data := flag.String("data", "testdata/retrieval", "the directory of the corpora")
	out := flag.String("out", "", "write the report to that file instead of standard output")
	quick := flag.Bool("quick", false, "leave out how fast it is")
	flag.Parse()
	if err := run(*data, *out, *quick); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(dir, out string, quick bool) error {
	ctx := context.Background()
	corpora, err := read(dir)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# How well tools are found\n\nMade by `make retrieval-report DATA=DIR OUT=docs/retrieval-report.md`; [Finding tools](discovery.md) describes the measurements.\n")
	scores, err := scoreAll(ctx, corpora)
	if err != nil {
		return err
	}
	reportScores(&b, corpora, scores)
	if !quick {
		if err := reportSpeed(ctx, &b, corpora); err != nil {
			return err
		}
	}
	if out == "" {
		_, err := os.Stdout.Write(b.Bytes())
		return err
	}
	return os.WriteFile(out, b.Bytes(), 0o644)
}

// read reads the corpora of a directory, in the order of their names.
func read(dir string) (all []corpus, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "tools.jsonl"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		c := corpus{name: filepath.Base(filepath.Dir(file))}
		if c.tools, err = from(file, index.ReadEvalTools); err != nil {
			return nil, err
		}
		if c.queries, err = from(filepath.Join(filepath.Dir(file), "queries.jsonl"),
			index.ReadEvalQueries); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no corpus found in %s: a corpus is a directory with tools.jsonl and queries.jsonl", dir)
	}
	return all, nil
}

func from[T any](name string, read func(string, io.Reader) ([]T, error)) ([]T, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return read(name, f)
}

// scoreAll returns, for each arm, the scores of each corpus. The first score of a corpus is for all its questions,
// and the others are for one kind of question each.
func scoreAll(ctx context.Context, corpora []corpus) (map[string][][]index.Score, error) {
	all := map[string][][]index.Score{}
	for _, c := range corpora {
		for _, arm := range arms {
			rank, end, err := ranker(arm, c.tools)
			if err != nil {
				return nil, err
			}
			rows, err := index.RunQueries(ctx, rank, c.queries, index.MinTop)
			if err := end(); err != nil {
				return nil, err
			}
			if err != nil {
				return nil, err
			}
			all[arm] = append(all[arm], index.ScoreRankings(c.queries, rows))
		}
	}
	return all, nil
}

// ranker returns the function that ranks tools with an arm, and a function that releases its resources.
func ranker(arm string, tools []index.Document) (index.RankFunc, func() error, error) {
	nothing := func() error { return nil }
	switch arm {
	case plainBM25:
		return plain(tools), nothing, nil
	case sqliteFTS:
		return fts(tools)
	}
	rank, err := index.NewRankFunc(arm, tools)
	return rank, nothing, err
}
