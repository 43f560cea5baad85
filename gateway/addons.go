package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/cards"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/addons"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/process"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// An AddonState is the state of an addon: whether it is in use, and if not, why.
type AddonState string

// The states of addons.
const (
	AddonActive        AddonState = "active"
	AddonNeedsApproval AddonState = "needs approval"
	AddonRejected      AddonState = "rejected"
	AddonUnusable      AddonState = "unusable"
)

// A FoundAddon is an addon with its state.
type FoundAddon struct {
	addons.Found
	State AddonState
	// Notes are lines for people about the tools of the addon that are left out because their names are taken.
	Notes []string
}

// FindAddons returns the addons of a configuration: first the user's own addons, then the addons in the working
// directory. An addon in the working directory is active only if a person has approved its files with exactly their
// current content. FindAddons returns no addons if c does not read configuration files, or if the settings turn addons
// off.
func FindAddons(c Config, s config.Settings, approvals store.RowApprovals) ([]FoundAddon, error) {
	if !c.readsFiles() || s.Deck.Addons != nil && !*s.Deck.Addons {
		return nil, nil
	}
	own, project, err := config.AddonDirs(config.Options{Dir: c.Dir, LookupEnv: c.LookupEnv})
	if err != nil {
		return nil, err
	}
	var all []FoundAddon
	for _, place := range []struct {
		dir         string
		fromProject bool
	}{{own, false}, {project, true}} {
		if place.dir == "" {
			continue
		}
		found, err := addons.Find(place.dir, place.fromProject)
		for _, f := range found {
			all = append(all, newFoundAddon(f, approvals))
		}
		if err != nil { // an error in a project's directory must not prevent the start of Drawbridge
			all = append(all, FoundAddon{Found: addons.Found{ID: filepath.Base(place.dir), Dir: place.dir,
				FromProject: place.fromProject, Err: err}, State: AddonUnusable})
		}
	}
	hideTakenNames(all)
	return all, nil
}

// addonFacts returns the data of the active addons that [LoadedConfig.Fingerprint] hashes: directory, digest and
// manifest.
func (r LoadedConfig) addonFacts() (facts []any) {
	for _, a := range r.addons {
		if a.State == AddonActive {
			facts = append(facts, a.Dir, a.Digest, a.Manifest)
		}
	}
	return facts
}

// newFoundAddon returns an addon with its state. If no person has approved or rejected a project's addon before, it
// needs approval, and its files are not read.
func newFoundAddon(f addons.Found, approvals store.RowApprovals) FoundAddon {
	if f.Err != nil {
		return FoundAddon{Found: f, State: AddonUnusable}
	}
	if !f.FromProject {
		return FoundAddon{Found: f, State: AddonActive}
	}
	last, ok := approvals.Find(AddonRow(f))
	if !ok {
		return FoundAddon{Found: f, State: AddonNeedsApproval}
	}
	switch f = addons.Read(f.Dir, true); {
	case f.Err != nil:
		return FoundAddon{Found: f, State: AddonUnusable}
	case last.Hash != f.Digest:
		return FoundAddon{Found: f, State: AddonNeedsApproval}
	case last.Approved:
		return FoundAddon{Found: f, State: AddonActive}
	}
	return FoundAddon{Found: f, State: AddonRejected}
}

// AddonRow returns a configuration row that represents an addon. The store keeps approvals by configuration row, so the
// approval of the addon is stored for this row.
func AddonRow(f addons.Found) config.Server {
	return config.Server{ID: drawbridge.ServerID(f.ID), Hash: f.Digest,
		Origin: config.Origin{Kind: config.OriginProject, Path: filepath.Join(f.Dir, addons.ManifestName)}}
}

// hideTakenNames makes an active addon unusable if an earlier active addon in all has the same id. It removes the tools
// of addons whose names a tool of Drawbridge itself or of an earlier addon already has.
func hideTakenNames(all []FoundAddon) {
	ids, tools := map[string]bool{}, map[string]string{}
	for _, row := range cards.NewCatalogue().Cards() {
		tools[naming.Canonical(string(row.ID))] = "Drawbridge"
	}
	for i := range all {
		a := &all[i]
		switch {
		case a.State != AddonActive:
			continue
		case ids[a.ID]:
			a.State, a.Err = AddonUnusable, errors.New("an addon of your own has the same id")
			continue
		}
		ids[a.ID] = true
		var kept []addons.Tool
		for _, t := range a.Tools {
			name := naming.Canonical(t.Name)
			if holder := tools[name]; holder != "" {
				a.Notes = append(a.Notes, fmt.Sprintf("its tool %s is left out: the name is taken by %s", t.Name, holder))
				continue
			}
			tools[name] = a.ID
			kept = append(kept, t)
		}
		a.Tools = kept
	}
}

// openAddons adds the active addons to g.addons. It logs warnings about unusable addons, and about tools that are left
// out.
func (g *Gateway) openAddons(c Config, found []FoundAddon) error {
	environ := c.Environ
	if environ == nil {
		environ = os.Environ()
	}
	for _, f := range found {
		for _, note := range f.Notes {
			g.log.Warn("a tool of an addon is left out", "addon", f.ID, "why", note)
		}
		if f.State == AddonUnusable {
			g.log.Warn("an addon cannot be used", "addon", f.ID, "err", f.Err)
		}
		if f.State != AddonActive {
			continue
		}
		addon, err := addons.New(f.Found, process.Environ(environ, nil, true), g.log)
		if err != nil {
			return err
		}
		g.addons = append(g.addons, addon)
	}
	return nil
}

// closeAddons stops the programs of the addons.
func (g *Gateway) closeAddons(ctx context.Context) error {
	var errs []error
	for _, a := range g.addons {
		errs = append(errs, a.Close(ctx))
	}
	return errors.Join(errs...)
}

// interceptors returns the interceptors of the configuration, then one interceptor for each addon.
func (g *Gateway) interceptors() []deck.Interceptor {
	all := append([]deck.Interceptor{}, g.config.Interceptors...)
	for _, a := range g.addons {
		all = append(all, addonInterceptor{a})
	}
	return all
}

// An addonInterceptor adapts an addon to [deck.Interceptor].
type addonInterceptor struct{ addon *addons.Addon }

var _ deck.Interceptor = addonInterceptor{}

// Name implements [deck.Interceptor].
func (i addonInterceptor) Name() string { return "addon " + i.addon.ID() }

// Intercepts implements [deck.Interceptor].
func (i addonInterceptor) Intercepts(s drawbridge.Spec) bool {
	return i.addon.Wants(addons.ToolBefore, string(s.Name)) || i.addon.Wants(addons.ToolAfter, string(s.Name))
}

// Before implements [deck.Interceptor].
func (i addonInterceptor) Before(ctx context.Context, c *deck.InterceptedCall) (what deck.Interception, err error) {
	what.Arguments, what.Blocked, err = i.addon.BeforeTool(ctx, addonCall(c.Caller, c.Spec, c.Arguments))
	return what, err
}

// After implements [deck.Interceptor].
func (i addonInterceptor) After(ctx context.Context, c *deck.InterceptedCall, o deck.CallOutcome) (json.RawMessage, error) {
	call := addonCall(c.Caller, c.Spec, c.Arguments)
	if call.Result = o.Result; o.Err != nil {
		call.Error = o.Err.Error()
	}
	return i.addon.AfterTool(ctx, call)
}

func addonCall(caller drawbridge.Caller, s drawbridge.Spec, arguments json.RawMessage) addons.Call {
	return addons.Call{Tool: string(s.Name), Server: string(s.Server), Run: deck.RunOf(caller), Client: addonClient(caller),
		Arguments: arguments}
}

func addonClient(c drawbridge.Caller) addons.Client {
	return addons.Client{Principal: c.Principal, Name: rawjson.GetString(c.Client, "name"), Session: c.Session, Dir: c.Dir}
}

// newToolCatalogue returns the catalogue of Drawbridge's own tools and the tools of the addons. Only the profile "all"
// selects the tools of the addons.
func (g *Gateway) newToolCatalogue() (*deck.Catalogue, error) {
	rows := cards.NewCatalogue().Cards()
	for _, a := range g.addons {
		for _, t := range a.Tools() {
			tool := addonTool{a, addonToolSpec(t)}
			rows = append(rows, deck.Card{ID: tool.spec.Name, Title: tool.spec.Title, Summary: firstLine(t.Description),
				Profiles: []deck.Membership{deck.MemberApp},
				Build:    func(deck.Context) (drawbridge.Card, error) { return tool, nil }})
		}
	}
	return deck.NewCatalogue(rows...)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// An addonTool is a card that calls a tool of an addon.
type addonTool struct {
	addon *addons.Addon
	spec  drawbridge.Spec
}

// Spec implements [drawbridge.Card].
func (t addonTool) Spec() drawbridge.Spec { return t.spec }

// Run implements [drawbridge.Card]. A failure of the program is a Backend fault.
func (t addonTool) Run(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	result, err := t.addon.CallTool(ctx, addonCall(call.Caller, t.spec, rawjson.Get(call.Params, "arguments")))
	switch {
	case err != nil && ctx.Err() != nil:
		return drawbridge.Result{}, ctx.Err()
	case err != nil:
		return drawbridge.Result{}, &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.ServerError,
			Step: "addon " + t.addon.ID(), Err: err}
	}
	return drawbridge.Result{Raw: result}, nil
}

func addonToolSpec(t addons.Tool) drawbridge.Spec {
	schema := json.RawMessage(t.InputSchema)
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object"}`)
	}
	s := drawbridge.Spec{Name: drawbridge.CardName(t.Name), Tool: t.Name, Title: t.Title, Sandbox: true}
	if s.Title == "" {
		s.Title = t.Name
	}
	hints := fmt.Sprintf(`{"readOnlyHint":%v,"openWorldHint":true}`, t.ReadOnly)
	s.Definition = rawjson.Apply(nil, rawjson.Put(rawjson.Quote(t.Name), "name"), rawjson.Put(rawjson.Quote(s.Title), "title"),
		rawjson.Put(rawjson.Quote(strings.TrimSpace(t.Description)), "description"), rawjson.Put(schema, "inputSchema"),
		rawjson.Put(json.RawMessage(hints), "annotations"))
	for _, scope := range t.Scopes {
		s.Scopes = append(s.Scopes, drawbridge.Scope(scope))
	}
	if len(s.Scopes) == 0 {
		s.Scopes = []drawbridge.Scope{cards.ScopeExec}
	}
	return s
}

// shellEnv returns the environment variables, as "name=value", that the addons add to the environment of a shell
// command.
func (g *Gateway) shellEnv(ctx context.Context, caller drawbridge.Caller, command, dir string) (env []string, err error) {
	for _, a := range g.addons {
		more, err := a.ShellEnv(ctx, addons.ShellCommand{Command: command, Dir: dir, Client: addonClient(caller)})
		if err != nil {
			return nil, fmt.Errorf("addon %s: %w", a.ID(), err)
		}
		env = append(env, more...)
	}
	return env, nil
}

// maxSessionEvents is the maximum number of queued session events for the addons; further events are dropped.
const maxSessionEvents = 256

// A sessionEvent is the begin or the end of a client's session.
type sessionEvent struct {
	name   string
	client addons.Client
}

// onSession is what the MCP server of the gateway calls when a client's session begins or ends. It removes the results
// of scripts of an ended session, and queues the event for the addons. If the queue is full, it logs a warning and drops
// the event.
func (g *Gateway) onSession(caller drawbridge.Caller, began bool) {
	if !began {
		g.shared.results.EndSession(caller)
	}
	if g.sessionEvents == nil {
		return
	}
	e := sessionEvent{addons.SessionEnd, addonClient(caller)}
	if began {
		e.name = addons.SessionStart
	}
	select {
	case g.sessionEvents <- e:
	default:
		g.log.Warn("addons were not told of a session", "event", e.name)
	}
}

// tellOfSessions sends queued session events to the addons until ctx ends. Then it sends the remaining queued events
// and returns.
func (g *Gateway) tellOfSessions(ctx context.Context) error {
	within := context.WithoutCancel(ctx) // sessions end during the shutdown, too
	for {
		select {
		case e := <-g.sessionEvents:
			g.tellOfSession(within, e)
		case <-ctx.Done():
			for len(g.sessionEvents) > 0 {
				g.tellOfSession(within, <-g.sessionEvents)
			}
			return ctx.Err()
		}
	}
}

func (g *Gateway) tellOfSession(ctx context.Context, e sessionEvent) {
	for _, a := range g.addons {
		a.Session(ctx, e.name, e.client)
	}
}
