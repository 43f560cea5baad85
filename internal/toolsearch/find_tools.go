package toolsearch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A Hit is a card that answers a question.
type Hit struct {
	Spec drawbridge.Spec
	// Score is how well it does: to be compared with those of the same question only, of which the best is 1. It is 0
	// for a card that does not, and is shown because none does.
	Score float64
	// Reason says in a few words what of the question is where in the card, or what else it was found by; empty where
	// the score is 0.
	Reason string
	// Ranking is what the index made of it.
	Ranking index.Hit
}

// Find gives at most so many cards that answer a question, the best first; 0 is as many as the options say. Matched
// says whether one of them has a word of the question. Where nothing answers it and there are cards, the hits are the
// first of those that are not in the short list, with a score of 0.
func (v *CardView) Find(ctx context.Context, query string, most int) (hits []Hit, matched bool) {
	if most == 0 {
		most = v.finder.options.TopK
	}
	if most < 0 {
		most = len(v.specs)
	}
	asked := queryTerms(query)
	hits = v.index.search(ctx, v, index.Query{Text: query, Limit: most,
		MinRelativeScore: max(v.finder.options.MinRelativeScore, 0)})
	for i := range hits {
		other := "similar words"
		if f := hits[i].Ranking; f.Words > 0 || f.Meaning == 0 && f.Far == 0 {
			matched = true
		} else {
			other = "near in meaning"
		}
		hits[i].Reason = cmp.Or(matchReason(asked, hits[i].Spec), other)
	}
	if len(hits) > 0 {
		return hits, matched
	}
	for _, pinned := range []bool{false, true} {
		for _, s := range v.specs {
			if len(hits) < most && isModelVisible(s) && v.finder.isPinned(s) == pinned {
				hits = append(hits, Hit{Spec: s})
			}
		}
	}
	return hits, false
}

// maxNear is how many names are given in the place of one that nobody has.
const maxNear = 3

// SuggestNames is the error of a card that is not there, with the names of some that are like it. Other errors stay as
// they are.
func (v *CardView) SuggestNames(ctx context.Context, name string, err error) error {
	f, ok := errors.AsType[*drawbridge.Fault](err)
	if !ok || f.Kind != drawbridge.UnknownCapability {
		return err
	}
	next := FindToolsName + " finds others"
	if near := v.similarNames(ctx, name); len(near) > 0 {
		next = "near: " + strings.Join(near, ", ") + "; " + next
	}
	// The kind is another: what is unknown is not the card that was called.
	return &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound, Step: f.Step,
		Err: f.Err, Next: next}
}

// similarNames gives names of cards that share something with a name. No model is asked: a name is no question, and
// nothing counts or limits how often somebody calls what is not there.
func (v *CardView) similarNames(ctx context.Context, name string) (names []string) {
	asked := queryTerms(name)
	for _, h := range v.index.search(ctx, v, index.Query{Text: name, Limit: maxNear, MinRelativeScore: 0.4,
		LocalOnly: true}) {
		if matchReason(asked, h.Spec) != "" {
			names = append(names, string(h.Spec.Name))
		}
	}
	return names
}

// AnswerFindTools carries out find_tools: its arguments are a query, and how many cards are to be shown. What is wrong
// with them is said in the result, since it is for the model.
func (v *CardView) AnswerFindTools(ctx context.Context, arguments json.RawMessage) drawbridge.Result {
	query, limit := rawjson.GetString(arguments, "query"), defaultLimit
	if raw := rawjson.Get(arguments, "limit"); raw != nil && string(raw) != "null" {
		n, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
		if err != nil || n != n {
			return errorResult("limit must be a whole number from 1 to " + strconv.Itoa(maxLimit) + ".")
		}
		limit = int(min(max(n, 1), maxLimit))
	}
	if raw := rawjson.Get(arguments, "query"); raw != nil && raw[0] != '"' {
		return errorResult("query must be a text that says what the tool is to do.")
	}
	most := v.finder.options.TopK
	if most > 0 {
		most = max(most, limit)
	}
	hits, matched := v.Find(ctx, query, most)
	more := hits[min(limit, len(hits)):]
	if hits = hits[:len(hits)-len(more)]; len(hits) > 0 && hits[0].Score == 0 {
		more = nil
	}
	more = more[:min(len(more), maxLimit)]
	return drawbridge.Result{Raw: rawjson.Apply(nil,
		rawjson.Put(textContent(describeHits(query, hits, more, matched)), "content"),
		rawjson.Put(encodeHits(hits, more), "structuredContent"))}
}

// describeHits writes the hits for a model: of each the name, why, and what it needs to call it.
func describeHits(query string, hits, more []Hit, matched bool) string {
	var b strings.Builder
	switch {
	case len(hits) == 0:
		return "There are no tools to be found."
	case !matched:
		b.WriteString("No tool has these words. These may be near, or are some of what there is; say in other words what you want to do to find others.\n")
	default:
		fmt.Fprintf(&b, "%s for %s, the best first. Call one with %s {\"name\": …, \"arguments\": {…}}.\n",
			pluralize(len(hits), "tool", "tools"), rawjson.Quote(clipQuery(query)), CallToolName)
	}
	for _, h := range hits {
		fmt.Fprintf(&b, "\n%s", h.Spec.Name)
		if h.Reason != "" {
			fmt.Fprintf(&b, " (%s)", h.Reason)
		}
		b.WriteString("\n")
		for _, part := range []string{"description", "inputSchema"} {
			raw := rawjson.Get(h.Spec.Definition, part)
			if text, ok := rawjson.DecodeString(raw); ok {
				fmt.Fprintf(&b, "%s\n", lineIndenter.Replace(strings.TrimSpace(text)))
			} else if raw != nil {
				fmt.Fprintf(&b, "arguments: %s\n", raw)
			}
		}
	}
	if len(more) > 0 {
		b.WriteString("\nLess likely: ")
		for i, h := range more {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(string(h.Spec.Name))
		}
		b.WriteString(".\n")
	}
	return b.String()
}

// lineIndenter moves the lines of a description in, but for the first: what begins at the edge of a line is ours, so
// that no description passes for another tool.
var lineIndenter = strings.NewReplacer("\r\n", "\n ", "\n", "\n ", "\r", "\n ", "\v", "\n ", "\f", "\n ", "\u0085",
	"\n ", "\u2028", "\n ", "\u2029", "\n ")

// encodeHits gives the hits to programs: each is its definition as it is listed, with score and why behind it.
func encodeHits(hits, more []Hit) json.RawMessage {
	out := []byte(`{"tools":[`)
	for i, h := range hits {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, rawjson.Apply(h.Spec.Definition,
			rawjson.Put(strconv.AppendFloat(nil, h.Score, 'f', 3, 64), "score"),
			rawjson.Put(rawjson.Quote(h.Reason), "why"))...)
	}
	out = append(out, `],"more":[`...)
	for i, h := range more {
		if i > 0 {
			out = append(out, ',')
		}
		out = rawjson.AppendQuoted(out, string(h.Spec.Name))
	}
	return append(out, ']', '}')
}

// CallToolError is the result of a call whose arguments are of no use, and why: an error that the model can read and
// mend.
func CallToolError(why error) drawbridge.Result {
	return errorResult(CallToolName + ": " + why.Error())
}

func errorResult(why string) drawbridge.Result {
	return drawbridge.Result{Raw: rawjson.Apply(nil, rawjson.Put(textContent(why), "content"),
		rawjson.Put(json.RawMessage("true"), "isError"))}
}

func textContent(text string) json.RawMessage {
	return append(rawjson.AppendQuoted([]byte(`[{"type":"text","text":`), text), '}', ']')
}

// clipQuery shortens what a caller wrote to what an answer may repeat.
func clipQuery(text string) string { return safetext.Truncate(text, 120, safetext.Bytes, "…") }
