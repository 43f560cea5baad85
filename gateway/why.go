package gateway

import (
	"context"
	"path/filepath"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// OpenWorkspace opens the workspace of a configuration. It creates none: the error is a *drawbridge.Fault with the code
// NotFound if there is none.
func OpenWorkspace(ctx context.Context, c Config) (*store.Workspace, error) {
	s, err := loadSettings(c)
	if err != nil {
		return nil, err
	}
	location, err := existingWorkspace(s, c.LookupEnv)
	if err != nil {
		return nil, err
	}
	if location == "" {
		return nil, &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.NotFound, Step: "there is no workspace yet",
			Next: "drawbridge workspace init"}
	}
	return store.OpenWorkspace(ctx, location, store.Options{})
}

// SessionsRoot returns the directory with the directories of the agent's sessions. ok is false if the home directory is
// unknown.
func SessionsRoot(lookup func(string) (string, bool)) (root string, ok bool) {
	state, ok := StateDir(lookup)
	if !ok {
		return "", false
	}
	return filepath.Join(state, "sessions"), true
}
