package finder

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// The names of the two cards. No other card is listed by one of them where lists may be short.
const (
	FindName = "find_tools"
	CallName = "call_tool"
)

const (
	// usualLimit is how many tools are shown in full where the question does not say, maxLimit how many it may ask for.
	usualLimit, maxLimit = 5, 50
	// maxServers is how many servers the description of find_tools names, and maxNamed that of call_tool.
	maxServers, maxNamed = 40, 12
)

// Own gives the two cards as they are known without their caller.
func Own() []drawbridge.Spec {
	v := &View{f: &Finder{}}
	own := func(name, title, summary string, definition json.RawMessage) drawbridge.Spec {
		return drawbridge.Spec{Name: drawbridge.CardName(name), Tool: name, Title: title, Summary: summary, Definition: definition}
	}
	return []drawbridge.Spec{
		own(FindName, findTitle, "Finds tools by what they do.", v.findCard()),
		own(CallName, callTitle, "Calls a tool by its name.", v.callCard()),
	}
}

// Hint is what is said of a short list to who reads about the use of the deck.
const Hint = "Most tools are not in the list: " + FindName + " finds them by what they do, and " + CallName + " calls them.\n"

const (
	findTitle = "Find tools"
	callTitle = "Call a tool"
)

// findCard is the definition of find_tools. It names the servers that the caller has, since a model looks for what it knows of.
func (v *View) findCard() json.RawMessage {
	var b strings.Builder
	names, counts, hidden := v.servers()
	b.WriteString("Find tools by what they do.")
	if hidden > 0 {
		fmt.Fprintf(&b, " %s not in your list of tools, but can be found and called: ", plural(hidden, "tool is", "tools are"))
		for i, name := range names[:min(len(names), maxServers)] {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%s (%d)", name, counts[i])
		}
		if more := len(names) - maxServers; more > 0 {
			b.WriteString(" and those of " + plural(more, "server", "servers") + " more")
		}
		b.WriteString(".")
	}
	b.WriteString(" Look here before you say that something cannot be done. Say what you want to do in a few words, " +
		"one step at a time. The answer has the tools that fit, the best first, with their input schemas; call them with " + CallName + ".")
	return definition(FindName, findTitle, b.String(),
		`{"type":"object","properties":{"query":{"type":"string","description":"What the tool is to do, such as \"list open pull requests\"."},`+
			`"limit":{"type":"integer","minimum":1,"maximum":`+strconv.Itoa(maxLimit)+`,"description":"How many tools to show; `+strconv.Itoa(usualLimit)+` if left out."}},"required":["query"]}`,
		`{"readOnlyHint":true,"idempotentHint":true,"openWorldHint":false}`)
}

// callCard is the definition of call_tool. What the tool that is called does is not known here, so it may be anything.
func (v *View) callCard() json.RawMessage {
	text := "Call a tool that is not in your list"
	if names, _, _ := v.servers(); len(names) > 0 {
		of := ""
		if len(names) > maxNamed {
			of = fmt.Sprintf(" and %d more", len(names)-maxNamed)
		}
		text += ": any tool of " + strings.Join(names[:min(len(names), maxNamed)], ", ") + of
	}
	text += ". " + FindName + " gives its name and the schema of its arguments. The answer is the tool's own."
	return definition(CallName, callTitle, text,
		`{"type":"object","properties":{"name":{"type":"string","description":"The tool's name, as `+FindName+` gave it."},`+
			`"arguments":{"type":"object","description":"The tool's arguments, by its input schema.","additionalProperties":true}},"required":["name"]}`,
		`{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false,"openWorldHint":true}`)
}

// servers names those whose tools are not in the short list, in configuration order, with how many each has; all is how many
// there are together. Cards that Drawbridge ships count as its own.
func (v *View) servers() (names []string, counts []int, all int) {
	at := map[drawbridge.ServerID]int{}
	for _, s := range v.specs {
		if v.f.pinned(s) {
			continue
		}
		i, ok := at[s.Server]
		if !ok {
			i = len(names)
			at[s.Server] = i
			name := string(s.Server)
			if name == "" {
				name = ship
			}
			names, counts = append(names, name), append(counts, 0)
		}
		counts[i]++
		all++
	}
	return names, counts, all
}

// ship is the server that shipped cards say they come from.
const ship = "drawbridge"

func definition(name, title, text, input, hints string) json.RawMessage {
	return wire.Apply(nil,
		wire.Put(wire.Quote(name), "name"),
		wire.Put(wire.Quote(title), "title"),
		wire.Put(wire.Quote(text), "description"),
		wire.Put(json.RawMessage(input), "inputSchema"),
		wire.Put(json.RawMessage(hints), "annotations"),
	)
}

func plural(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + more
}
