package toolsearch

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// The names of the tools of a short list in the mode Code. RunPythonName is the name of a shipped card, which the deck
// lists like other cards; the other two are search tools.
const (
	SearchToolsName   = "search_tools"
	DescribeToolsName = "describe_tools"
	RunPythonName     = "run_python"
)

const (
	searchTitle   = "Search tools"
	describeTitle = "Describe tools"
	// defaultFound is the default number of tools that search_tools returns. maxDescribed is the maximum number of tools
	// that describe_tools describes.
	defaultFound, maxDescribed = 10, 20
)

// codeModeHint explains the short list of the mode Code in the deck's instructions.
const codeModeHint = "Most tools are not in the list: " + SearchToolsName + " finds them, " + DescribeToolsName +
	" shows their arguments, and a script of " + RunPythonName + " calls them.\n"

func searchToolsDefinition() json.RawMessage {
	return cardDefinition(SearchToolsName, searchTitle,
		"Find tools for a task. The result has their names and what they do; "+DescribeToolsName+
			" shows their arguments, and a script of "+RunPythonName+" calls them.",
		`{"type":"object","properties":{"query":{"type":"string","description":"The task, such as \"list open pull requests\"."},`+
			`"limit":{"type":"integer","minimum":1,"maximum":`+strconv.Itoa(maxLimit)+
			`,"description":"How many tools to show; `+strconv.Itoa(defaultFound)+` if left out."}},"required":["query"]}`,
		`{"readOnlyHint":true,"idempotentHint":true,"openWorldHint":false}`)
}

func describeToolsDefinition() json.RawMessage {
	return cardDefinition(DescribeToolsName, describeTitle,
		"Show the descriptions and the schemas of tools by their names.",
		`{"type":"object","properties":{"names":{"type":"array","items":{"type":"string"},"maxItems":`+
			strconv.Itoa(maxDescribed)+`,"description":"The names, as `+SearchToolsName+` returned them."}},"required":["names"]}`,
		`{"readOnlyHint":true,"idempotentHint":true,"openWorldHint":false}`)
}

// maxServerTokens is the maximum number of tokens of the servers' names in the description of run_python. The
// descriptions of the three tools have fewer than 400 tokens with it.
const maxServerTokens = 90

// runPythonDefinition returns the definition of run_python with the servers whose tools scripts can call. It depends on
// the names of the servers only, so that it stays the same when their tools change.
func (v *CardView) runPythonDefinition(definition json.RawMessage) json.RawMessage {
	names, _, _ := v.unlistedServers()
	if len(names) == 0 {
		return definition
	}
	var b strings.Builder
	b.WriteString(rawjson.GetString(definition, "description") + "\n\nServers: ")
	left := maxServerTokens
	for i, name := range names {
		if left -= EstimateTokens([]byte(name + ", ")); left < 0 {
			b.WriteString(" and " + pluralize(len(names)-i, "server", "servers") + " more")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(name)
	}
	return rawjson.Apply(definition, rawjson.Put(rawjson.Quote(b.String()), "description"))
}

// answerSearchTools returns the names and the summaries of the tools that match a query.
func (v *CardView) answerSearchTools(ctx context.Context, arguments json.RawMessage) drawbridge.Result {
	query, limit, err := readSearchArguments(arguments, defaultFound)
	if err != "" {
		return errorResult(err)
	}
	hits, matched := v.Find(ctx, query, limit)
	type found struct {
		Name    string `json:"name"`
		Summary string `json:"summary"`
	}
	list := []found{}
	var b strings.Builder
	if !matched && len(hits) > 0 {
		b.WriteString("No tool matches these words. These tools may be similar, or are examples.\n")
	}
	for _, h := range hits[:min(limit, len(hits))] {
		list = append(list, found{string(h.Spec.Name), h.Spec.Summary})
		fmt.Fprintf(&b, "%s: %s\n", h.Spec.Name, h.Spec.Summary)
	}
	if len(list) == 0 {
		b.WriteString("No tools were found.")
	}
	structured, _ := json.Marshal(map[string]any{"tools": list}) // texts always encode
	return drawbridge.Result{Raw: rawjson.Apply(nil, rawjson.Put(textContent(b.String()), "content"),
		rawjson.Put(structured, "structuredContent"))}
}

// answerDescribeTools returns the definitions of the named tools. A name that the caller may not call is unknown. For a
// tool without an output schema, the learned one is returned if there is one.
func (v *CardView) answerDescribeTools(arguments json.RawMessage,
	learned func(drawbridge.CardName) (LearnedOutput, bool)) drawbridge.Result {
	var in struct {
		Names []string `json:"names"`
	}
	if err := json.Unmarshal(arguments, &in); err != nil || len(in.Names) == 0 {
		return errorResult(`names must be a list of names of tools, such as ["github__create_issue"].`)
	}
	var b strings.Builder
	for _, name := range in.Names[:min(len(in.Names), maxDescribed)] {
		i, ok := v.places[name]
		if !ok || !isModelVisible(v.specs[i]) {
			fmt.Fprintf(&b, "%s: unknown tool; %s finds tools\n\n", clipQuery(name), SearchToolsName)
			continue
		}
		fmt.Fprintf(&b, "%s\n", name)
		describeDefinition(&b, v.specs[i].Definition, "description", "inputSchema", "outputSchema")
		if learned != nil {
			if out, ok := learned(v.specs[i].Name); ok {
				fmt.Fprintf(&b, "result (learned from %s; others may differ): %s\n",
					pluralize(out.Results, "result", "results"), out.Schema)
			}
		}
		b.WriteString("\n")
	}
	return drawbridge.Result{Raw: rawjson.Apply(nil, rawjson.Put(textContent(b.String()), "content"))}
}
