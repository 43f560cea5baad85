package main

import (
	"fmt"
	"io"

	"github.com/drawbridge-mcp/drawbridge/internal/cli/evaluate"
)

// macro is the mean over the corpora of an arm's scores.
func macro(scores [][]evaluate.Score) evaluate.Score {
	var whole []evaluate.Score
	for _, s := range scores {
		whole = append(whole, s[0])
	}
	return evaluate.Mean(whole)
}

// cell shows recall@5, recall@20, nDCG@10 and how often the first was needed, in percent.
func cell(s evaluate.Score) string {
	return fmt.Sprintf("%.1f / %.1f / **%.1f** / %.1f", 100*s.Recall5, 100*s.Recall20, 100*s.NDCG10, 100*s.Hit1)
}

func reportScores(w io.Writer, corpora []corpus, scores map[string][][]evaluate.Score) {
	fmt.Fprint(w, "\n## How well\n\nEach cell: recall@5 / recall@20 / nDCG@10 / how often the first tool was a needed one, in percent.\n\n| ranked by |")
	for _, c := range corpora {
		fmt.Fprintf(w, " %s |", c.name)
	}
	fmt.Fprint(w, " mean |\n|---|")
	for range corpora {
		fmt.Fprint(w, "---|")
	}
	fmt.Fprint(w, "---|\n| tools, questions |")
	for _, c := range corpora {
		fmt.Fprintf(w, " %d, %d |", len(c.tools), len(c.queries))
	}
	fmt.Fprintln(w, " |")
	for _, arm := range arms {
		fmt.Fprintf(w, "| %s |", arm)
		for _, s := range scores[arm] {
			fmt.Fprintf(w, " %s |", cell(s[0]))
		}
		fmt.Fprintf(w, " %s |\n", cell(macro(scores[arm])))
	}
	reportGains(w, corpora, scores)
	reportKinds(w, corpora, scores)
	fmt.Fprint(w, "\nPrinted again by `go run ./internal/retrievalscore -quick -data DIR`, one corpus at a time by\n`drawbridge index eval --tools DIR/mcp/tools.jsonl --queries DIR/mcp/queries.jsonl --arm lexical`.\n")
}

// A gain is how much better one arm is to be than another.
type gain struct {
	arm, than string
	least     float64
}

var gains = []gain{
	{evaluate.Lexical, plainBM25, 10}, {evaluate.Lexical, sqliteFTS, 2.5}, {evaluate.Hybrid, evaluate.Lexical, 0.8},
}

// over gives how much better one arm is than another in nDCG@10: on each corpus, and in the mean.
func over(scores map[string][][]evaluate.Score, arm, than string) (each []float64, mean float64) {
	for i, s := range scores[arm] {
		each = append(each, 100*(s[0].NDCG10-scores[than][i][0].NDCG10))
	}
	return each, 100 * (macro(scores[arm]).NDCG10 - macro(scores[than]).NDCG10)
}

func reportGains(w io.Writer, corpora []corpus, scores map[string][][]evaluate.Score) {
	fmt.Fprint(w, "\nWon and lost, in points of nDCG@10:\n\n| |")
	for _, c := range corpora {
		fmt.Fprintf(w, " %s |", c.name)
	}
	fmt.Fprint(w, " mean | wanted | |\n|---|")
	for range corpora {
		fmt.Fprint(w, "---|")
	}
	fmt.Fprintln(w, "---|---|---|")
	for _, g := range gains {
		each, mean := over(scores, g.arm, g.than)
		fmt.Fprintf(w, "| %s over %s |", g.arm, g.than)
		for _, points := range each {
			fmt.Fprintf(w, " %+.1f |", points)
		}
		fmt.Fprintf(w, " **%+.1f** | %+.1f | %s |\n", mean, g.least, verdict(mean >= g.least))
	}
}

func verdict(ok bool) string {
	if ok {
		return "kept"
	}
	return "**missed**"
}

// reportKinds shows the kinds of questions of each corpus that has several.
func reportKinds(w io.Writer, corpora []corpus, scores map[string][][]evaluate.Score) {
	fmt.Fprint(w, "\nBy kind of question, where a corpus has several:\n\n| corpus | kind | questions |")
	for _, arm := range arms {
		fmt.Fprintf(w, " %s |", arm)
	}
	fmt.Fprint(w, "\n|---|---|---|")
	for range arms {
		fmt.Fprint(w, "---|")
	}
	fmt.Fprintln(w)
	for i, c := range corpora {
		kinds := scores[arms[0]][i][1:]
		if len(kinds) < 2 {
			continue
		}
		for k, s := range kinds {
			fmt.Fprintf(w, "| %s | %s | %d |", c.name, s.Kind, s.Queries)
			for _, arm := range arms {
				fmt.Fprintf(w, " %s |", cell(scores[arm][i][k+1]))
			}
			fmt.Fprintln(w)
		}
	}
}
