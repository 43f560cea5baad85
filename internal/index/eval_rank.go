package index

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// The names of the ways of ranking, called arms. RankLexical ranks by words alone. RankHybrid ranks by words and the
// built-in encoder, like an index without an external embedding model.
const (
	RankLexical = "lexical"
	RankHybrid  = "hybrid"
)

// Arms contains the names of all arms.
var Arms = [...]string{RankLexical, RankHybrid}

// NewRankFunc builds an index of tools, and returns a function that ranks the tools in the given way. If arm is not
// in Arms, the error is an [EvalError].
func NewRankFunc(arm string, tools []Document) (RankFunc, error) {
	var find func(ctx context.Context, question string, most int) []Hit
	switch arm {
	case RankLexical:
		x := NewLexicalIndex()
		x.Update(tools, nil)
		find = func(_ context.Context, question string, most int) []Hit { return x.Search(question, most) }
	case RankHybrid:
		x := New(Options{})
		x.Update(tools, nil)
		find = func(ctx context.Context, question string, most int) []Hit {
			return x.Find(ctx, Query{Text: question, Limit: most})
		}
	default:
		return nil, &EvalError{fmt.Sprintf("unknown arm %s: want %s", safetext.Quote(arm), strings.Join(Arms[:], " or "))}
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

// FillRankings extends each ranking with fewer than most tools to most tools. It appends tools that the ranking does
// not contain, in the order of their IDs.
func FillRankings(rows []Ranking, tools []Document, most int) {
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
