package cards

import (
	"context"
	_ "embed" // the description
	"encoding/json"
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

//go:embed tools.md
var toolsText string

// shippedServer is the server that shipped cards say they come from.
const shippedServer = "drawbridge"

// maxListedTools is how many tools one answer lists.
const maxListedTools = 200

// A listedTool is one tool in an answer.
type listedTool struct {
	Name    drawbridge.CardName `json:"name"`
	Server  string              `json:"server"`
	Title   string              `json:"title,omitempty"`
	Summary string              `json:"summary"`
}

// toolsCard says which tools exist for its caller.
func toolsCard(d CardLister) shippedCard {
	return newControlCard(cardDescription{
		name: "drawbridge_tools", title: "List tools", text: toolsText,
		input: `{"type":"object","properties":{` +
			`"server":{"type":"string","description":"Only tools of this server."},` +
			`"query":{"type":"string","description":"Only tools with all these words in name, title or summary."}},` +
			`"additionalProperties":false,"examples":[{},{"server":"drawbridge"},{"query":"list tools"}]}`,
		output: `{"type":"object","properties":{"tools":{"type":"array","items":{"type":"object","properties":{` +
			`"name":{"type":"string"},"server":{"type":"string"},"title":{"type":"string"},"summary":{"type":"string"}},` +
			`"required":["name","server","summary"]}},"total":{"type":"integer"}},"required":["tools","total"]}`,
	}, func(_ context.Context, call drawbridge.Call) (drawbridge.Result, error) {
		var filter struct{ Server, Query string }
		if args := rawjson.Get(call.Params, "arguments"); args != nil {
			if err := json.Unmarshal(args, &filter); err != nil {
				return newToolError("The arguments server and query must be texts.")
			}
		}
		rows := filterTools(d.Cards(call.Caller), filter.Server, filter.Query)
		total := len(rows)
		rows = rows[:min(total, maxListedTools)]
		return newResult(formatTools(rows, total), map[string]any{"tools": rows, "total": total})
	})
}

// filterTools gives the rows of the specs that pass the filters.
func filterTools(specs []drawbridge.Spec, server, query string) []listedTool {
	words := strings.Fields(strings.ToLower(query))
	rows := []listedTool{}
	for _, s := range specs {
		row := listedTool{s.Name, string(s.Server), s.Title, s.Summary}
		if row.Server == "" {
			row.Server = shippedServer
		}
		if server != "" && row.Server != server {
			continue
		}
		text := strings.ToLower(string(row.Name) + " " + row.Title + " " + row.Summary)
		if containsAllWords(text, words) {
			rows = append(rows, row)
		}
	}
	return rows
}

func containsAllWords(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

func formatTools(rows []listedTool, total int) string {
	if total == 0 {
		return "No tool matches."
	}
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%s (%s): %s\n", r.Name, r.Server, r.Summary)
	}
	if total > len(rows) {
		fmt.Fprintf(&b, "and %d more: narrow the filter to see them\n", total-len(rows))
	}
	return b.String()
}
