package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
)

// macro returns the mean of an arm's scores over the corpora, with equal weight for each corpus.
func macro(scores [][]index.Score) index.Score {
	var whole []index.Score
	for _, s := range scores {
		whole = append(whole, s[0])
	}
	return index.MeanScore(whole)
}

// cell returns the text of a table cell for a score. It contains recall@5, recall@20, nDCG@10, and the share of
// questions for which the first tool is a needed tool, in percent.
func cell(s index.Score) string {
	return fmt.Sprintf("%.1f / %.1f / **%.1f** / %.1f", 100*s.Recall5, 100*s.Recall20, 100*s.NDCG10, 100*s.Hit1)
}

// row writes a row of a Markdown table.
func row(w io.Writer, cells ...string) {
	line := "|"
	for _, cell := range cells {
		if cell != "" {
			line += " " + cell
		}
		line += " |"
	}
	fmt.Fprintln(w, line)
}

// head writes the header of a Markdown table.
func head(w io.Writer, cells ...string) {
	row(w, cells...)
	fmt.Fprintln(w, "|"+strings.Repeat("---|", len(cells)))
}

// cells returns the results of the function of for each element of all.
func cells[T any](all []T, of func(T) string) (out []string) {
	for _, one := range all {
		out = append(out, of(one))
	}
	return out
}

func names(corpora []corpus) []string {
	return cells(corpora, func(c corpus) string { return c.name })
}

func reportScores(w io.Writer, corpora []corpus, scores map[string][][]index.Score) {
	fmt.Fprint(w, "\n## How well\n\nEach cell: recall@5 / recall@20 / nDCG@10 / how often the first tool was a needed one, in percent.\n\n")
	head(w, slices.Concat([]string{"ranked by"}, names(corpora), []string{"mean"})...)
	row(w, slices.Concat([]string{"tools, questions"}, cells(corpora, func(c corpus) string {
		return fmt.Sprintf("%d, %d", len(c.tools), len(c.queries))
	}), []string{""})...)
	for _, arm := range arms {
		row(w, slices.Concat([]string{arm}, cells(scores[arm], func(s []index.Score) string { return cell(s[0]) }),
			[]string{cell(macro(scores[arm]))})...)
	}
	reportGains(w, corpora, scores)
	reportKinds(w, corpora, scores)
	fmt.Fprint(w, "\nTo measure again: `go run ./internal/tools/retrievalscore -quick -data DIR`, or for one corpus\n`drawbridge index eval --tools DIR/mcp/tools.jsonl --queries DIR/mcp/queries.jsonl --arm lexical`.\n")
}

// enough is the minimum number of questions in all corpora for which the report compares the gains with the required
// gains. With fewer questions, the comparison would say little.
const enough = 500

// A gain is a requirement: the arm named arm must have at least least points of nDCG@10 more than the arm named than.
type gain struct {
	arm, than string
	least     float64
}

var gains = []gain{
	{index.RankLexical, plainBM25, 10}, {index.RankLexical, sqliteFTS, 2.5}, {index.RankHybrid,
		index.RankLexical, 0.8},
}

// over returns how many points of nDCG@10 one arm has more than another: for each corpus, and as the mean of the
// corpora.
func over(scores map[string][][]index.Score, arm, than string) (each []float64, mean float64) {
	for i, s := range scores[arm] {
		each = append(each, 100*(s[0].NDCG10-scores[than][i][0].NDCG10))
	}
	return each, 100 * (macro(scores[arm]).NDCG10 - macro(scores[than]).NDCG10)
}

func reportGains(w io.Writer, corpora []corpus, scores map[string][][]index.Score) {
	asked := 0
	for _, c := range corpora {
		asked += len(c.queries)
	}
	bar := []string{"wanted", ""}
	if asked < enough {
		bar = nil
	}
	fmt.Fprint(w, "\nWon and lost, in points of nDCG@10:\n\n")
	head(w, slices.Concat([]string{""}, names(corpora), []string{"mean"}, bar)...)
	for _, g := range gains {
		each, mean := over(scores, g.arm, g.than)
		if bar != nil {
			bar = []string{fmt.Sprintf("%+.1f", g.least), verdict(mean >= g.least)}
		}
		row(w, slices.Concat([]string{g.arm + " over " + g.than},
			cells(each, func(points float64) string { return fmt.Sprintf("%+.1f", points) }),
			[]string{fmt.Sprintf("**%+.1f**", mean)}, bar)...)
	}
	if bar == nil {
		fmt.Fprintf(w, "\nOf %d questions this says little: what is wanted of the whole sets is not held against them.\n", asked)
	}
}

func verdict(ok bool) string {
	if ok {
		return "kept"
	}
	return "**missed**"
}

// reportKinds writes the scores for each kind of question. It omits corpora with fewer than two kinds.
func reportKinds(w io.Writer, corpora []corpus, scores map[string][][]index.Score) {
	fmt.Fprint(w, "\nBy kind of question, where a corpus has several:\n\n")
	head(w, slices.Concat([]string{"corpus", "kind", "questions"}, arms)...)
	for i, c := range corpora {
		kinds := scores[arms[0]][i][1:]
		if len(kinds) < 2 {
			continue
		}
		for k, s := range kinds {
			row(w, slices.Concat([]string{c.name, s.Kind, fmt.Sprint(s.Queries)},
				cells(arms, func(arm string) string { return cell(scores[arm][i][k+1]) }))...)
		}
	}
}
