package guards

import (
	"context"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// An AgentGuard decides on calls of Drawbridge's own agent, and of scripts that it started, by the rights of the session:
// the permission mode, and the patterns of tools of each agent. It has no opinion on other calls.
type AgentGuard struct {
	// Rules are the user's rules. A call that a rule allows is not asked for.
	Rules *RuleGuard
	// Harmless are Drawbridge's own tools that change nothing but the session. Edits are its tools that edit files.
	Harmless, Edits []string
}

var _ deck.Guard = AgentGuard{}

// agentRule is the name of the guard in verdicts.
const agentRule = "agent"

// Decide decides on a call by the permission mode.
func (g AgentGuard) Decide(_ context.Context, q deck.Question) drawbridge.Verdict {
	allow := drawbridge.Verdict{Effect: drawbridge.Allow}
	if q.Caller.Agent == nil || q.Kind != "tool" {
		return allow
	}
	if !q.Caller.Agent.Permits(q.Spec) {
		return drawbridge.Verdict{Effect: drawbridge.Deny, Rule: agentRule, Hide: true,
			Reason: "the agent may not call the tool"}
	}
	if g.onlyReads(q) {
		return allow
	}
	switch q.Caller.Agent.Mode {
	case drawbridge.PlanOnly:
		return drawbridge.Verdict{Effect: drawbridge.Deny, Rule: agentRule,
			Reason: "the session only plans, and the tool may change something",
			Next:   "present the plan; the person then ends the planning"}
	case drawbridge.Bypass:
		return allow
	case drawbridge.AcceptEdits:
		if q.Spec.Server == "" && slices.Contains(g.Edits, q.Spec.Tool) {
			return allow
		}
	case drawbridge.AskFirst:
	default:
		return drawbridge.Verdict{Effect: drawbridge.Deny, Rule: agentRule, Reason: "the permission mode is unknown"}
	}
	if g.Rules != nil && g.Rules.allowsByRule(q) {
		return allow
	}
	return drawbridge.Verdict{Effect: drawbridge.Ask, Rule: agentRule, Reason: "the tool may change something"}
}

// onlyReads reports whether a call changes nothing outside the session. What a server says about its own tools counts
// only if the server is trusted.
func (g AgentGuard) onlyReads(q deck.Question) bool {
	reads := string(rawjson.Get(q.Spec.Definition, "annotations", "readOnlyHint")) == "true"
	if q.Spec.Server == "" {
		return reads || slices.Contains(g.Harmless, q.Spec.Tool)
	}
	return reads && g.Rules != nil && g.Rules.trustOf(q.Spec.Server) == trusted
}

// trusted is the trust level of a server whose annotations count.
const trusted = "trusted"

// trustOf returns the trust level of a server.
func (w *RuleGuard) trustOf(id drawbridge.ServerID) string { return w.rules.Load().trustLevel(id) }

// allowsByRule reports whether a rule of the user, and not the default effect, allows a call.
func (w *RuleGuard) allowsByRule(q deck.Question) bool {
	o := w.rules.Load()
	if o.policy == nil {
		return false
	}
	d := o.policy.Decide(w.request(o, q))
	return d.Effect == drawbridge.Allow && d.Rule > 0
}
