package gateway

import (
	"context"
	"os"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/cards"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/confine"
	"github.com/drawbridge-mcp/drawbridge/internal/guards"
	"github.com/drawbridge-mcp/drawbridge/internal/jobs"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/policy"
	"github.com/drawbridge-mcp/drawbridge/internal/process"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safehttp"
	"github.com/drawbridge-mcp/drawbridge/internal/webpage"
)

// provisionTools builds Drawbridge's own tools. w is nil if no workspace is open. If a caller has no directory, the
// relative paths in its calls are resolved against c.Dir.
func (g *Gateway) provisionTools(c Config, w cards.Workspace) (*deck.Provisioned, error) {
	handles := map[string]any{
		cards.ReadGateKey: cards.NewReadGate(), cards.ReadTrailKey: g.trail,
		cards.ResourceReaderKey: cards.ResourceReader(g.readResource),
		cards.JobsKey:           g.shared.jobs,
		cards.DelegateKey:       cards.Delegate(agentDelegate{}),
		cards.PlanApproverKey:   cards.PlanApprover(agentDelegate{}),
		cards.ClientProfileKey:  cards.ClientProfile(g.toolGuard.ProfileOf),
		cards.ProtectedFilesKey: cards.ProtectedFiles(g.fileGuard.Protects),
		cards.WebClientKey:      cards.WebClient(safehttp.NewPageClient(g.set.Settings.Deck.FetchHosts...)),
	}
	if w != nil {
		handles[cards.WorkspaceKey] = w
	}
	if len(g.addons) > 0 {
		handles[cards.ShellEnvKey] = cards.ShellEnv(g.shellEnv)
	}
	search, err := g.newWebSearch(c)
	if err != nil {
		return nil, err
	}
	if search != nil {
		handles[cards.WebSearchKey] = search
	}
	log, err := OpenUndoLog(c.Store, g.set.Settings, c.LookupEnv)
	if err != nil {
		return nil, err
	}
	if log != nil {
		handles[cards.UndoKey] = newUndoLog(log, g.trail)
	}
	return deck.Provision(g.catalogue, deck.All, deck.Context{Dir: c.Dir, Shell: newShell(g.set.Settings.Deck),
		Handles: handles})
}

// newWebSearch returns the web search provider of the settings; nil if none is configured.
func (g *Gateway) newWebSearch(c Config) (cards.WebSearch, error) {
	s := g.set.Settings.Deck
	if s.Search == "" || s.Search == "none" {
		return nil, nil
	}
	o := modelOptions(c, g.set.Settings, g.shared.vault.UserSecrets())
	o.Known = g.shared.vault.Known()
	return webpage.NewSearcher(webpage.SearchOptions{Provider: s.Search, BaseURL: s.SearchURL, FindKey: o.KeyFinder(s.SearchKey)})
}

// newShell returns the shell for the tools that execute commands. A command is confined as s configures for the profile
// of the caller's tools; if s does not mention the profile, the general setting applies.
func newShell(s config.DeckSettings) jobs.LocalShell {
	shell := jobs.LocalShell{Env: process.Environ(os.Environ(), nil, true)}
	byProfile := map[deck.Profile]config.Confinement{}
	for name, c := range s.ConfineProfiles {
		if p, err := deck.ParseProfile(name); err == nil { // the settings accept no other names
			byProfile[p] = c
		}
	}
	shell.Confine = func(c deck.ShellCommand) *confine.Profile {
		how, ok := byProfile[c.Profile]
		if !ok {
			how = s.Confine
		}
		return confine.ProfileFor(config.Server{ID: drawbridge.OwnServer, Command: "bash", Cwd: c.Dir, Confine: how}, shell.Env, "")
	}
	return shell
}

// newOwnToolGuard returns the guard that decides on calls of Drawbridge's own tools, configured by the settings. It
// returns an error if the settings contain an unknown profile.
func (g *Gateway) newOwnToolGuard(c Config, s config.Settings) (guard guards.OwnToolGuard, err error) {
	guard = guards.OwnToolGuard{Catalogue: g.catalogue, Clients: map[string]deck.Profile{},
		Context: deck.Context{Dir: c.Dir}, Roots: slices.Clone(s.Deck.Roots)}
	if guard.Profile, err = deck.ParseProfile(s.Deck.Profile); err != nil {
		return guard, err
	}
	for name, profile := range s.Deck.Clients {
		if guard.Clients[name], err = deck.ParseProfile(profile); err != nil {
			return guard, err
		}
	}
	for _, root := range s.Roots {
		guard.Roots = append(guard.Roots, policy.PathSpellings(root.URI, "")[0])
	}
	guard.Home = homeDir(c.LookupEnv)
	guard.PersonTools, guard.PathTools, guard.HasPersonTools = cards.PersonTools(), cards.FolderTools(), &g.crossing
	if !g.offersScripts(LoadedConfig{config: c, set: g.set}.discoverySettings()) {
		guard.NotForClients = []string{cards.RunPythonName}
	}
	return guard, nil
}

// readResource reads a resource of a server for one of Drawbridge's tools. It makes a separate call with the caller and
// the peer of the tool's call, so guards and audit apply to the separate call, too.
func (g *Gateway) readResource(ctx context.Context, call drawbridge.Call, server drawbridge.ServerID,
	uri string) (drawbridge.Result, error) {
	return g.deck.Do(ctx, drawbridge.Call{Caller: call.Caller, Method: mcp.MethodResourcesRead, Peer: call.Peer,
		Params: rawjson.Apply(nil, rawjson.Put(rawjson.Quote(naming.QualifiedURI(server, uri)), "uri"))})
}

// OwnTools returns the tools of Drawbridge itself that a profile selects and that the caller may call, with their
// listed names. The error is an UnknownCapability fault for an unknown profile.
func (g *Gateway) OwnTools(caller drawbridge.Caller, profile string) ([]drawbridge.Spec, error) {
	p, err := deck.ParseProfile(profile)
	if err != nil {
		return nil, err
	}
	selected, err := g.catalogue.CardsForDeckProfile(p)
	if err != nil {
		return nil, err
	}
	var specs []drawbridge.Spec
	for _, spec := range g.deck.Items(caller, mcp.MethodToolsList) {
		if spec.Server == "" && slices.ContainsFunc(selected, func(c deck.Card) bool { return string(c.ID) == spec.Tool }) {
			specs = append(specs, spec)
		}
	}
	return specs, nil
}

// IsOwnTool reports whether a card is one of Drawbridge's own tools, or a tool of an addon. Control cards and cards of
// servers are not.
func (g *Gateway) IsOwnTool(spec drawbridge.Spec) bool {
	return spec.Server == "" && slices.ContainsFunc(g.ownTools.Tools(), func(c drawbridge.Card) bool {
		return c.Spec().Tool == spec.Tool
	})
}
