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
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
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
	location, err := existingWorkspace(s, c.LookupEnv)
	if err != nil || location == "" {
		return err
	}
	if g.workspace, err = store.OpenWorkspace(ctx, location, store.Options{}); err != nil {
		return err
	}
	g.workspaceName = workspaceName(location)
	return nil
}

// existingWorkspace returns the location of the workspace; "" if there is none. A database exists if the settings name
// it.
func existingWorkspace(s config.Settings, lookup func(string) (string, bool)) (string, error) {
	location, err := WorkspaceLocation(s, lookup)
	if err != nil {
		if s.WorkspaceURL == "" && s.WorkspacePath == "" {
			return "", nil // the settings name none
		}
		return "", err
	}
	if isFileStore(location) {
		if _, err := os.Stat(location); errors.Is(err, os.ErrNotExist) {
			return "", nil
		}
	}
	return location, nil
}

// A NewWorkspace is the result of CreateWorkspace.
type NewWorkspace struct {
	// Location is the path of the file, or the host and the name of the database.
	Location string `json:"location"`
	// Created reports that there was no file before. It is false for a database.
	Created bool `json:"created"`
}

// CreateWorkspace creates the workspace of a configuration, unless it exists. The error is that of [WorkspaceLocation] or
// of the store.
func CreateWorkspace(ctx context.Context, c Config) (NewWorkspace, error) {
	s, err := loadSettings(c)
	if err != nil {
		return NewWorkspace{}, err
	}
	location, err := WorkspaceLocation(s, c.LookupEnv)
	if err != nil {
		return NewWorkspace{}, err
	}
	made := NewWorkspace{Location: location}
	if isFileStore(location) {
		_, err := os.Stat(location)
		made.Created = errors.Is(err, os.ErrNotExist)
	} else {
		made.Location = workspaceName(location)
	}
	w, err := store.OpenWorkspace(ctx, location, store.Options{})
	if err != nil {
		return NewWorkspace{}, err
	}
	return made, w.Close()
}

// hasWorkspace reports whether a workspace is open.
func (g *Shared) hasWorkspace() bool {
	g.workspaceMu.Lock()
	defer g.workspaceMu.Unlock()
	return g.workspace != nil
}

// HasWorkspace reports whether the gateway reads and writes a workspace.
func (g *Gateway) HasWorkspace() bool { return g.crossing.Load() }

// HasWorkspace reports whether a gateway with this configuration has a workspace: one is open, or it exists.
func (r LoadedConfig) HasWorkspace() bool {
	if r.shared.hasWorkspace() {
		return true
	}
	location, err := existingWorkspace(r.set.Settings, r.config.LookupEnv)
	return err != nil || location != "" // the error is that of opening it
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
func (g *Gateway) newWorkspace(ctx context.Context) (*boundary.Workspace, error) {
	if err := g.shared.openWorkspace(ctx, g.config); err != nil {
		return nil, err
	}
	g.shared.workspaceMu.Lock()
	defer g.shared.workspaceMu.Unlock()
	if g.shared.workspace == nil {
		return nil, nil
	}
	return boundary.New(g.shared.workspace, g.shared.workspaceName, g.trail, g.eraseTexts), nil
}

// workspaceNotes returns what an agent's briefing says about the open workspace.
func (g *Gateway) workspaceNotes() []string {
	if !g.crossing.Load() {
		return nil
	}
	g.shared.workspaceMu.Lock()
	defer g.shared.workspaceMu.Unlock()
	return []string{"Workspace: " + safetext.OneLine(g.shared.workspaceName) + " is open (page_search, page_read, page_create). " +
		"What you write there is a candidate until the person accepts it."}
}

// eraseTexts removes scrubbed texts from kept results of scripts, from the journals of runs and from the earlier contents
// of files.
func (g *Gateway) eraseTexts(ctx context.Context, texts []string) error {
	g.shared.results.Erase(texts)
	runs := g.shared.db.EraseScriptRuns(ctx)
	log, err := OpenUndoLog(g.config.Store, g.set.Settings, g.config.LookupEnv)
	if err == nil && log != nil {
		err = log.Erase(texts)
	}
	return errors.Join(runs, err)
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
func (g *Gateway) newOwnParts(ctx context.Context, view *cardBackend, d config.ToolDiscovery) (own ownParts, err error) {
	w, err := g.newWorkspace(ctx)
	if err != nil {
		return own, err
	}
	if w == nil {
		own.listed = g.withScripts(cards.ControlCards(view, view, nil), d)
		return own, nil
	}
	g.crossing.Store(true)
	of, err := g.workspaceCards(w)
	own.listed = g.withScripts(append(cards.ControlCards(view, view, w), of...), d)
	own.templates, own.boundary, own.workspace = cards.WorkspaceResources(w), w, w
	return own, err
}

// addWorkspace adds to the deck the cards of a workspace that was made since the gateway was opened. It does nothing if there
// is none, or if the deck has its cards. The caller must hold mu.
func (g *Gateway) addWorkspace(ctx context.Context) error {
	if g.crossing.Load() {
		return nil
	}
	w, err := g.newWorkspace(ctx)
	if err != nil || w == nil {
		return err
	}
	all, err := g.workspaceCards(w)
	if err != nil {
		return err
	}
	view := &cardBackend{g}
	for _, c := range cards.ControlCards(view, view, w) {
		if c.Spec().Name == cards.WorkspaceName {
			all = append(all, c)
		}
	}
	g.crossing.Store(true)
	if err := g.deck.OpenBoundary(w, all, cards.WorkspaceResources(w), cards.WorkspaceName); err != nil {
		g.crossing.Store(false)
		return err
	}
	return nil
}

// workspaceCards returns the cards that read and write a workspace.
func (g *Gateway) workspaceCards(w *boundary.Workspace) ([]drawbridge.Card, error) {
	return cards.WorkspaceCards(w, deck.Context{Dir: g.config.Dir, Handles: map[string]any{cards.ReadTrailKey: g.trail,
		cards.ProtectedFilesKey: cards.ProtectedFiles(g.fileGuard.Protects)}})
}

// workspaceName returns the name of a workspace that people see: that of its file, or that of the database.
func workspaceName(location string) string {
	if u, err := url.Parse(location); err == nil && u.Scheme != "" && u.Host != "" {
		return u.Host + u.Path // without the password
	}
	return filepath.Base(location)
}
