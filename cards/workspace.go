package cards

import (
	"context"
	_ "embed" // the description

	"github.com/drawbridge-mcp/drawbridge"
)

//go:embed workspace.md
var workspaceText string

// workspaceInput is empty: the card has no arguments.
type workspaceInput struct{}

// workspaceOutput contains the open workspace, or nil.
type workspaceOutput struct {
	Workspace *struct{} `json:"workspace"`
}

// newWorkspaceCard returns the card that names the open workspace. Workspaces do not exist yet, so the workspace is
// always null.
func newWorkspaceCard() drawbridge.Card {
	return newShipped(Description[workspaceInput]{
		Name: "drawbridge_workspace", Title: "Show the workspace", Text: workspaceText,
		Examples: []workspaceInput{{}},
	}, func(context.Context, drawbridge.Call, workspaceInput) (Answer[workspaceOutput], error) {
		return Answer[workspaceOutput]{Text: "No workspace is open."}, nil
	})
}
