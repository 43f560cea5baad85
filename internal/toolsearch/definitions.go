package toolsearch

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// The names of the two search tools. In the modes Search and Auto these names are reserved: a server's tool with one
// of these names is not listed under it.
const (
	FindToolsName = "find_tools"
	CallToolName  = "call_tool"
)

const (
	// defaultLimit is the default number of tools for which find_tools returns the whole definition, and maxLimit the
	// maximum number.
	defaultLimit, maxLimit = 5, 50
	// maxServers is the maximum number of servers that the description of find_tools names. maxNamed is the maximum
	// number that the description of call_tool names.
	maxServers, maxNamed = 40, 12
)

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

// shortListHint is the text for clients, in the gateway's instructions, which explains that most tools are not
// listed.
const shortListHint = "Most tools are not in the list: " + FindToolsName + " finds them by task, and " +
	CallToolName + " calls them.\n"

const (
	findTitle = "Find tools"
	callTitle = "Call a tool"
)

// findToolsDefinition returns the definition of find_tools. The description names the servers whose tools the caller
// can find, because models search for products that they know.
func (v *CardView) findToolsDefinition() json.RawMessage {
	var b strings.Builder
	names, counts, hidden := v.unlistedServers()
	b.WriteString("Find tools for a task.")
	if hidden > 0 {
		fmt.Fprintf(&b, " %s not in your list of tools, but can be found and called: ",
			pluralize(hidden, "tool is", "tools are"))
		for i, name := range names[:min(len(names), maxServers)] {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%s (%d)", name, counts[i])
		}
		if more := len(names) - maxServers; more > 0 {
			b.WriteString(" and those of " + pluralize(more, "server", "servers") + " more")
		}
		b.WriteString(".")
	}
	b.WriteString(" Look here before you say that something cannot be done. Describe the task in a few words, " +
		"one step at a time. The result has the matching tools, the best first, with their input schemas; call them with " + CallToolName + ".")
	return cardDefinition(FindToolsName, findTitle, b.String(),
		`{"type":"object","properties":{"query":{"type":"string","description":"The task, such as \"list open pull requests\"."},`+
			`"limit":{"type":"integer","minimum":1,"maximum":`+strconv.Itoa(maxLimit)+
			`,"description":"How many tools to show; `+strconv.Itoa(defaultLimit)+
			` if left out."}},"required":["query"]}`,
		`{"readOnlyHint":true,"idempotentHint":true,"openWorldHint":false}`)
}

// callToolDefinition returns the definition of call_tool. Its annotations declare that the tool may be destructive,
// because the tool that will be called is unknown.
func (v *CardView) callToolDefinition() json.RawMessage {
	text := "Call a tool that is not in your list"
	if names, _, _ := v.unlistedServers(); len(names) > 0 {
		of := ""
		if len(names) > maxNamed {
			of = fmt.Sprintf(" and %d more", len(names)-maxNamed)
		}
		text += ": any tool of " + strings.Join(names[:min(len(names), maxNamed)], ", ") + of
	}
	text += ". " + FindToolsName + " returns its name and the schema of its arguments. The result is that of the tool."
	return cardDefinition(CallToolName, callTitle, text,
		`{"type":"object","properties":{"name":{"type":"string","description":"The tool's name, as `+
			FindToolsName+` returned it."},`+
			`"arguments":{"type":"object","description":"The tool's arguments, by its input schema.","additionalProperties":true}},"required":["name"]}`,
		`{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false,"openWorldHint":true}`)
}

// unlistedServers returns the servers with tools that are not pinned, in configuration order, and the number of such
// tools for each server. all is the sum of these numbers. Drawbridge's own tools are counted under the name
// shippedServer.
func (v *CardView) unlistedServers() (names []string, counts []int, all int) {
	at := map[drawbridge.ServerID]int{}
	for _, s := range v.specs {
		if v.finder.isPinned(s) {
			continue
		}
		i, ok := at[s.Server]
		if !ok {
			i = len(names)
			at[s.Server] = i
			name := string(s.Server)
			if name == "" {
				name = shippedServer
			}
			names, counts = append(names, name), append(counts, 0)
		}
		counts[i]++
		all++
	}
	return names, counts, all
}

// shippedServer is the name under which descriptions mention Drawbridge's own tools, which have no server.
const shippedServer = "drawbridge"

func cardDefinition(name, title, text, input, hints string) json.RawMessage {
	return rawjson.Apply(nil,
		rawjson.Put(rawjson.Quote(name), "name"),
		rawjson.Put(rawjson.Quote(title), "title"),
		rawjson.Put(rawjson.Quote(text), "description"),
		rawjson.Put(json.RawMessage(input), "inputSchema"),
		rawjson.Put(json.RawMessage(hints), "annotations"),
	)
}

func pluralize(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + more
}
