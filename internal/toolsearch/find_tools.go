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

// A Hit is a tool that matches a query.
type Hit struct {
	Spec drawbridge.Spec
	// Score is the score as a share of the best hit's score; the best hit has 1. If no tool matches the query, the
	// hits are tools that do not match, with score 0.
	Score float64
	// Reason is a short explanation of the match; empty if the score is 0.
	Reason string
	// Ranking contains the scores from the index.
	Ranking index.Hit
}

// Find returns at most most tools that match a query, best first. If most is 0, the limit is Options.TopK; if most is
// negative, there is no limit. matched reports whether at least one hit contains a word of the query. If no tool
// matches, Find returns the first tools of the view, with score 0. Tools that are not pinned then come before the
// pinned ones.
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

// maxNear is the maximum number of suggestions for an unknown name.
const maxNear = 3

// SuggestNames is called with the error of call_tool. If the error means that the called tool is unknown,
// SuggestNames adds the names of similar tools to it. Other errors are returned unchanged.
func (v *CardView) SuggestNames(ctx context.Context, name string, err error) error {
	f, ok := errors.AsType[*drawbridge.Fault](err)
	if !ok || f.Kind != drawbridge.UnknownCapability {
		return err
	}
	next := FindToolsName + " finds others"
	if near := v.similarNames(ctx, name); len(near) > 0 {
		next = "near: " + strings.Join(near, ", ") + "; " + next
	}
	// The kind of the error changes to BridgeFault. UnknownCapability would mean that call_tool is unknown, and only
	// the tool named in its arguments is unknown.
	return &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound, Step: f.Step,
		Err: f.Err, Next: next}
}

// similarNames returns the names of tools that are similar to name. It uses no external model, because a name is not
// a query. Calls with unknown names are not limited, so they could cause many requests to the model.
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

// AnswersSearch reports whether a name is that of a search tool that [CardView.AnswerSearch] answers in the finder's
// mode.
func (f *Finder) AnswersSearch(name string) bool {
	inCode := f.options.Mode == Code && (name == SearchToolsName || name == DescribeToolsName)
	return inCode || name == FindToolsName
}

// AnswerSearch returns the result of a search tool. If the arguments are invalid, the result has isError and describes
// the error, so that the model can correct its call. learned returns the learned output of a tool; it may be nil.
func (v *CardView) AnswerSearch(ctx context.Context, name string, arguments json.RawMessage,
	learned func(drawbridge.CardName) (LearnedOutput, bool)) drawbridge.Result {
	switch name {
	case SearchToolsName:
		return v.answerSearchTools(ctx, arguments)
	case DescribeToolsName:
		return v.answerDescribeTools(arguments, learned)
	}
	return v.answerFindTools(ctx, arguments)
}

// readSearchArguments returns the query and the limit of a search. problem describes invalid arguments, for the model.
func readSearchArguments(arguments json.RawMessage, defaultLimit int) (query string, limit int, problem string) {
	query, limit = rawjson.GetString(arguments, "query"), defaultLimit
	if raw := rawjson.Get(arguments, "limit"); raw != nil && string(raw) != "null" {
		n, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
		if err != nil || n != n {
			return "", 0, "limit must be a whole number from 1 to " + strconv.Itoa(maxLimit) + "."
		}
		limit = int(min(max(n, 1), maxLimit))
	}
	if raw := rawjson.Get(arguments, "query"); raw != nil && raw[0] != '"' {
		return "", 0, "query must be a text that describes the task, such as \"list open pull requests\"."
	}
	return query, limit, ""
}

// answerFindTools returns the result of find_tools.
func (v *CardView) answerFindTools(ctx context.Context, arguments json.RawMessage) drawbridge.Result {
	query, limit, problem := readSearchArguments(arguments, defaultLimit)
	if problem != "" {
		return errorResult(problem)
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

// describeDefinition writes members of a definition for the model.
func describeDefinition(b *strings.Builder, definition json.RawMessage, members ...string) {
	labels := map[string]string{"inputSchema": "arguments", "outputSchema": "result"}
	for _, member := range members {
		raw := rawjson.Get(definition, member)
		if text, ok := rawjson.DecodeString(raw); ok {
			fmt.Fprintf(b, "%s\n", lineIndenter.Replace(strings.TrimSpace(text)))
		} else if raw != nil {
			fmt.Fprintf(b, "%s: %s\n", labels[member], raw)
		}
	}
}

// describeHits returns a text for the model about the hits. It contains the name, the reason, the description and the
// arguments of each hit. Of the hits in more it contains only the names.
func describeHits(query string, hits, more []Hit, matched bool) string {
	var b strings.Builder
	switch {
	case len(hits) == 0:
		return "No tools were found."
	case !matched:
		b.WriteString("No tool matches these words. The following tools may be similar, or are examples; describe the task in other words to find others.\n")
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
		describeDefinition(&b, h.Spec.Definition, "description", "inputSchema")
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

// lineIndenter indents all lines of a description except the first. In the text of describeHits, the name of a tool
// is at the beginning of a line without a space. Because of the indentation, a description cannot imitate another
// tool.
var lineIndenter = strings.NewReplacer("\r\n", "\n ", "\n", "\n ", "\r", "\n ", "\v", "\n ", "\f", "\n ", "\u0085",
	"\n ", "\u2028", "\n ", "\u2029", "\n ")

// encodeHits encodes the hits as JSON for programs. Each hit is the listed definition of its tool with the additional
// members score and why. Of the hits in more it contains only the names.
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

// CallToolError returns the result of call_tool for invalid arguments. It contains the error, so that the model can
// correct its call.
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

// clipQuery truncates a query to 120 bytes, so that a result can repeat it.
func clipQuery(text string) string { return safetext.Truncate(text, 120, safetext.Bytes, "…") }
