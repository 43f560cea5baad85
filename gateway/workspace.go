package gateway

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/cards"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/boundary"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// WorkspaceLocation returns the location of the workspace: the one in the settings, or else workspace.db in the
// directory of [StateDir]. The error is a *drawbridge.Fault with the code InvalidInput if the home directory is unknown,
// or if store.CheckLocation refuses the location.
func WorkspaceLocation(s config.Settings, lookup func(string) (string, bool)) (string, error) {
	for _, place := range []string{s.WorkspaceURL, s.WorkspacePath} {
		if place != "" {
			return store.CheckLocation(place)
		}
	}
	dir, ok := StateDir(lookup)
	if !ok {
		return "", &drawbridge.Fault{
			Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: "locate the workspace",
			Err: errors.New("the home directory is unknown"), Next: "set path in [workspace]",
		}
	}
	return filepath.Join(dir, "workspace.db"), nil
}

// openWorkspace opens the workspace, unless it is open. It does nothing if the file does not exist.
func (g *Shared) openWorkspace(ctx context.Context, c Config) error {
	g.workspaceMu.Lock()
	defer g.workspaceMu.Unlock()
	if g.workspace != nil {
		return nil
	}
	s, err := loadSettings(c)
	if err != nil {
		return err
	}
	location, err := WorkspaceLocation(s, c.LookupEnv)
	if err != nil {
		if s.WorkspaceURL == "" && s.WorkspacePath == "" {
			return nil // the settings name none
		}
		return err
	}
	if isFileStore(location) {
		if _, err := os.Stat(location); errors.Is(err, os.ErrNotExist) {
			return nil
		}
	}
	if g.workspace, err = store.OpenWorkspace(ctx, location, store.Options{}); err != nil {
		return err
	}
	g.workspaceName = workspaceName(location)
	return nil
}

// hasWorkspace reports whether a workspace is open.
func (g *Shared) hasWorkspace() bool {
	g.workspaceMu.Lock()
	defer g.workspaceMu.Unlock()
	return g.workspace != nil
}

func (g *Shared) closeWorkspace() error {
	g.workspaceMu.Lock()
	defer g.workspaceMu.Unlock()
	if g.workspace == nil {
		return nil
	}
	return g.workspace.Close()
}

// newWorkspace opens the workspace for the callers of the gateway. It returns nil if there is none.
func (g *Gateway) newWorkspace(ctx context.Context, trail *deck.ReadTrail) (*boundary.Workspace, error) {
	if err := g.shared.openWorkspace(ctx, g.config); err != nil {
		return nil, err
	}
	g.shared.workspaceMu.Lock()
	defer g.shared.workspaceMu.Unlock()
	if g.shared.workspace == nil {
		return nil, nil
	}
	return boundary.New(g.shared.workspace, g.shared.workspaceName, trail), nil
}

// ownParts are what Drawbridge itself adds to a deck.
type ownParts struct {
	// listed are the cards that every client is listed, and templates those of resources.
	listed, templates []drawbridge.Card
	// boundary and workspace are nil if no workspace is open.
	boundary  deck.Boundary
	workspace cards.Workspace
}

// newOwnParts opens the workspace, and returns the cards that every client is listed.
func (g *Gateway) newOwnParts(ctx context.Context, view *cardBackend, d config.ToolDiscovery, trail *deck.ReadTrail) (own ownParts, err error) {
	w, err := g.newWorkspace(ctx, trail)
	if err != nil {
		return own, err
	}
	if w == nil {
		own.listed = g.withScripts(cards.ControlCards(view, view, nil), d)
		return own, nil
	}
	of, err := cards.WorkspaceCards(w, deck.Context{Dir: g.config.Dir, Handles: map[string]any{cards.ReadTrailKey: trail,
		cards.ProtectedFilesKey: cards.ProtectedFiles(g.fileGuard.Protects)}})
	own.listed = g.withScripts(append(cards.ControlCards(view, view, w), of...), d)
	own.templates, own.boundary, own.workspace = cards.WorkspaceResources(w), w, w
	return own, err
}

// workspaceName returns the name of a workspace that people see: that of its file, or that of the database.
func workspaceName(location string) string {
	if u, err := url.Parse(location); err == nil && u.Scheme != "" && u.Host != "" {
		return u.Host + u.Path // without the password
	}
	return filepath.Base(location)
}
