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

// SearchCards returns the search tools of the finder's mode, with descriptions that do not depend on the caller. The
// first ones are find_tools and call_tool, which models that Drawbridge runs use in every mode.
func (f *Finder) SearchCards() []drawbridge.Spec {
	v := &CardView{finder: f}
	own := func(name, title, summary string, definition json.RawMessage) drawbridge.Spec {
		return drawbridge.Spec{Name: drawbridge.CardName(name), Tool: name, Title: title, Summary: summary,
			Definition: definition}
	}
	all := []drawbridge.Spec{
		own(FindToolsName, findTitle, "Finds tools for a task.", v.findToolsDefinition()),
		own(CallToolName, callTitle, "Calls a tool by its name.", v.callToolDefinition()),
	}
	if f.options.Mode == Code {
		all = append(all,
			own(SearchToolsName, searchTitle, "Finds tools for a task.", searchToolsDefinition()),
			own(DescribeToolsName, describeTitle, "Shows the arguments of tools.", describeToolsDefinition()))
	}
	return all
}

// ShortListHint returns the text in the deck's instructions that explains a short list.
func (f *Finder) ShortListHint() string {
	if f.options.Mode == Code {
		return codeModeHint
	}
	return shortListHint
}

// AnswersSearch reports whether a name is that of a search tool that [CardView.AnswerSearch] answers in the finder's
// mode.
func (f *Finder) AnswersSearch(name string) bool {
	inCode := f.options.Mode == Code && (name == SearchToolsName || name == DescribeToolsName)
	return inCode || name == FindToolsName
}

// AnswerSearch returns the result of a search tool. If the arguments are invalid, the result has isError and describes
// the error, so that the model can correct its call.
func (v *CardView) AnswerSearch(ctx context.Context, name string, arguments json.RawMessage) drawbridge.Result {
	switch name {
	case SearchToolsName:
		return v.answerSearchTools(ctx, arguments)
	case DescribeToolsName:
		return v.answerDescribeTools(arguments)
	}
	return v.answerFindTools(ctx, arguments)
}

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

// runPythonDefinition returns the definition of run_python with the servers whose tools scripts can call.
func (v *CardView) runPythonDefinition(definition json.RawMessage) json.RawMessage {
	names, counts, _ := v.unlistedServers()
	if len(names) == 0 {
		return definition
	}
	var b strings.Builder
	b.WriteString(rawjson.GetString(definition, "description"))
	b.WriteString("\n\nServers, with the numbers of their tools: ")
	for i, name := range names[:min(len(names), maxServers)] {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s (%d)", name, counts[i])
	}
	if more := len(names) - maxServers; more > 0 {
		b.WriteString(" and " + pluralize(more, "server", "servers") + " more")
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

// answerDescribeTools returns the definitions of the named tools. A name that the caller may not call is unknown.
func (v *CardView) answerDescribeTools(arguments json.RawMessage) drawbridge.Result {
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
		b.WriteString("\n")
	}
	return drawbridge.Result{Raw: rawjson.Apply(nil, rawjson.Put(textContent(b.String()), "content"))}
}
