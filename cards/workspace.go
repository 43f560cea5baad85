package cards

import (
	"context"
	_ "embed" // the description

	"github.com/drawbridge-mcp/drawbridge"
)

//go:embed workspace.md
var workspaceText string

// workspaceCard says which workspace is open: none, for there are no workspaces yet, and it says so.
func workspaceCard() shippedCard {
	return newControlCard(cardDescription{
		name: "drawbridge_workspace", title: "Show the workspace", text: workspaceText,
		input: `{"type":"object","properties":{},"additionalProperties":false,"examples":[{}]}`,
		output: `{"type":"object","properties":{"workspace":{"type":["object","null"]}},` +
			`"required":["workspace"]}`,
	}, func(context.Context, drawbridge.Call) (drawbridge.Result, error) {
		return newResult("No workspace is open.", map[string]any{"workspace": nil})
	})
}
