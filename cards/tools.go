package cards

import (
	"context"
	_ "embed" // the description
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

//go:embed tools.md
var toolsText string

// maxListedTools is the maximum number of tools in one result.
const maxListedTools = 200

// toolsInput contains the filters. An empty filter matches every tool.
type toolsInput struct {
	Server string `json:"server,omitempty" jsonschema:"Only tools of this server."`
	Query  string `json:"query,omitempty" jsonschema:"Only tools with all these words in name, title or summary."`
}

// toolsOutput contains at most maxListedTools matching tools. Total is the number of all matching tools.
type toolsOutput struct {
	Tools []listedTool `json:"tools"`
	Total int          `json:"total"`
}

// A listedTool is one tool in a result.
type listedTool struct {
	Name    drawbridge.CardName `json:"name"`
	Server  string              `json:"server"`
	Title   string              `json:"title,omitempty"`
	Summary string              `json:"summary"`
}

// newToolsCard returns the card that lists the tools its caller may call.
func newToolsCard(d CardLister) drawbridge.Card {
	return newShipped(Description[toolsInput]{
		Name: "drawbridge_tools", Title: "List tools", Text: toolsText,
		Examples: []toolsInput{{}, {Server: "drawbridge"}, {Query: "list tools"}},
	}, func(_ context.Context, call drawbridge.Call, in toolsInput) (Answer[toolsOutput], error) {
		rows := filterTools(d.Cards(call.Caller), in)
		total := len(rows)
		rows = rows[:min(total, maxListedTools)]
		return Answer[toolsOutput]{Text: formatTools(rows, total), Value: toolsOutput{rows, total}}, nil
	})
}

// filterTools returns the tools that match the filters.
func filterTools(specs []drawbridge.Spec, in toolsInput) []listedTool {
	words := strings.Fields(strings.ToLower(in.Query))
	rows := []listedTool{}
	for _, s := range specs {
		row := listedTool{s.Name, string(s.Server), s.Title, s.Summary}
		if row.Server == "" {
			row.Server = string(drawbridge.OwnServer)
		}
		if in.Server != "" && row.Server != in.Server {
			continue
		}
		text := strings.ToLower(string(row.Name) + " " + row.Title + " " + row.Summary)
		if containsAllWords(text, words) {
			rows = append(rows, row)
		}
	}
	return rows
}

// containsAllWords reports whether text contains every word.
func containsAllWords(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// formatTools returns the text for people: a line for each tool.
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
