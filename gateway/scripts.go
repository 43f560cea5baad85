package gateway

import (
	"context"
	"os"
	"path/filepath"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/cards"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/toolsearch"
	"github.com/drawbridge-mcp/drawbridge/sandbox"
)

// openSandbox opens the sandbox for scripts. It starts nothing.
func openSandbox(ctx context.Context, c Config, s config.SandboxSettings) (*sandbox.Sandbox, error) {
	lookup := c.LookupEnv
	if lookup == nil {
		lookup = os.LookupEnv
	}
	o := sandbox.Options{Workers: s.Workers, Logger: c.Logger}
	if dir, ok := lookup("XDG_CACHE_HOME"); ok && filepath.IsAbs(dir) {
		o.Dir = filepath.Join(dir, "drawbridge", "python")
	}
	return sandbox.Open(ctx, o)
}

// closeSandbox ends the running scripts, and removes the results that they left.
func (g *Shared) closeSandbox() error {
	defer g.results.Close()
	if g.scripts == nil {
		return nil
	}
	return g.scripts.Close()
}

// A scriptRunner runs scripts in the sandbox of the gateways that share it. Without a sandbox it returns why.
type scriptRunner struct{ shared *Shared }

var _ cards.ScriptRunner = scriptRunner{}

// Run implements [cards.ScriptRunner].
func (r scriptRunner) Run(ctx context.Context, script sandbox.Script, host sandbox.Host) (sandbox.Outcome, error) {
	if r.shared.scriptsErr != nil {
		return sandbox.Outcome{}, r.shared.scriptsErr
	}
	return r.shared.scripts.Run(ctx, script, host)
}

// scriptLimits returns the limits of scripts that the settings describe.
func scriptLimits(s config.SandboxSettings) sandbox.Limits {
	return sandbox.Limits{Time: s.Timeout, Memory: s.Memory, Output: int(s.Output), Calls: s.Calls}
}

// A scriptTools is the deck as scripts use it.
type scriptTools struct{ g *Gateway }

var _ cards.ScriptTools = scriptTools{}

// Call implements [cards.ScriptTools].
func (t scriptTools) Call(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	return t.g.deck.Call(ctx, call)
}

// Approve implements [cards.ScriptTools].
func (t scriptTools) Approve(ctx context.Context, a deck.ScriptApproval) (deck.ApprovalAnswer, error) {
	return t.g.deck.ApproveScript(ctx, a)
}

// UseGrant implements [cards.ScriptTools].
func (t scriptTools) UseGrant(ctx context.Context, a deck.ScriptApproval) (deck.ApprovalAnswer, bool, error) {
	return t.g.deck.UseScriptGrant(ctx, a)
}

// Tools implements [cards.ScriptTools].
func (t scriptTools) Tools(ctx context.Context, caller drawbridge.Caller, wait bool) []drawbridge.Spec {
	if wait {
		t.g.starter.waitBeforeList(ctx)
	}
	return t.g.deck.Items(caller, mcp.MethodToolsList)
}

// Find implements [cards.ScriptTools].
func (t scriptTools) Find(ctx context.Context, caller drawbridge.Caller, query string, limit int) []drawbridge.Spec {
	t.g.starter.waitBeforeList(ctx)
	hits, _ := t.g.deck.SearchView(caller).Find(ctx, query, limit)
	specs := make([]drawbridge.Spec, len(hits))
	for i, hit := range hits {
		specs[i] = hit.Spec
	}
	return specs
}

// LearnedOutput implements [cards.ScriptTools].
func (t scriptTools) LearnedOutput(ctx context.Context, caller drawbridge.Caller, name drawbridge.CardName) (
	deck.LearnedOutput, bool) {
	return t.g.deck.LearnedOutput(ctx, caller, name)
}

// newRunPythonCard returns the card that runs scripts.
func (g *Gateway) newRunPythonCard() drawbridge.Card {
	s := g.set.Settings.Sandbox
	return cards.NewRunPythonCard(scriptRunner{g.shared}, scriptTools{g}, scriptRuns{g.shared}, scriptLimits(s),
		cards.ScriptResults{Store: g.shared.results, Gateway: g.id, Limit: int(s.Result)}, g.scriptTasks)
}

// offersScripts reports whether clients may run scripts.
func (g *Gateway) offersScripts(d config.ToolDiscovery) bool {
	clients := g.set.Settings.Sandbox.Clients
	return d.Mode == string(toolsearch.Code) || clients != nil && *clients
}

// withScripts adds the card that runs scripts, if clients may call it.
func (g *Gateway) withScripts(all []drawbridge.Card, d config.ToolDiscovery) []drawbridge.Card {
	if g.offersScripts(d) {
		all = append(all, g.newRunPythonCard())
	}
	return all
}

// insideTools returns Drawbridge's own tools, which clients see by their profile.
func (g *Gateway) insideTools(d config.ToolDiscovery) []drawbridge.Card {
	all := g.ownTools.Tools()
	if !g.offersScripts(d) {
		all = append(all, g.newRunPythonCard())
	}
	return all
}
