package guards

import (
	"log/slog"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
)

func TestPermissionModes(t *testing.T) {
	rules, err := CompileRules(&drawbridge.Rules{Default: drawbridge.Allow, Rules: []drawbridge.Rule{
		{Effect: drawbridge.Allow, Tools: []string{"mail__archive"}}}})
	if err != nil {
		t.Fatal(err)
	}
	ruleGuard := NewRuleGuard(slog.New(slog.DiscardHandler))
	ruleGuard.Update(rules, []config.Server{{ID: "mail"}, {ID: "safe", Trust: "trusted"}}, nil)
	guard := AgentGuard{Rules: ruleGuard, Harmless: []string{"todo"}, Edits: []string{"edit"}}
	const reads = `{"annotations":{"readOnlyHint":true}}`
	for _, c := range []struct {
		server, tool, definition string
		// want are the effects in the modes default, acceptEdits, plan and bypass.
		want [4]drawbridge.Effect
	}{
		{"", "read", reads, [4]drawbridge.Effect{drawbridge.Allow, drawbridge.Allow, drawbridge.Allow, drawbridge.Allow}},
		{"", "todo", `{}`, [4]drawbridge.Effect{drawbridge.Allow, drawbridge.Allow, drawbridge.Allow, drawbridge.Allow}},
		{"", "edit", `{}`, [4]drawbridge.Effect{drawbridge.Ask, drawbridge.Allow, drawbridge.Deny, drawbridge.Allow}},
		{"", "bash", `{}`, [4]drawbridge.Effect{drawbridge.Ask, drawbridge.Ask, drawbridge.Deny, drawbridge.Allow}},
		{"mail", "send", `{}`, [4]drawbridge.Effect{drawbridge.Ask, drawbridge.Ask, drawbridge.Deny, drawbridge.Allow}},
		{"mail", "edit", `{}`, [4]drawbridge.Effect{drawbridge.Ask, drawbridge.Ask, drawbridge.Deny, drawbridge.Allow}},
		{"mail", "list", reads, [4]drawbridge.Effect{drawbridge.Ask, drawbridge.Ask, drawbridge.Deny, drawbridge.Allow}},
		{"safe", "list", reads, [4]drawbridge.Effect{drawbridge.Allow, drawbridge.Allow, drawbridge.Allow, drawbridge.Allow}},
		{"mail", "archive", `{}`, [4]drawbridge.Effect{drawbridge.Allow, drawbridge.Allow, drawbridge.Deny, drawbridge.Allow}},
	} {
		name := drawbridge.CardName(c.tool)
		if c.server != "" {
			name = drawbridge.CardName(c.server + "__" + c.tool)
		}
		q := deck.Question{Kind: "tool", Method: "tools/call", Spec: drawbridge.Spec{Name: name, Tool: c.tool,
			Server: drawbridge.ServerID(c.server), Definition: []byte(c.definition)}, Params: []byte(`{"name":"` + string(name) + `"}`)}
		for i, mode := range []drawbridge.PermissionMode{drawbridge.AskFirst, drawbridge.AcceptEdits, drawbridge.PlanOnly, drawbridge.Bypass} {
			for _, kind := range []drawbridge.CallerKind{drawbridge.Agent, drawbridge.Sandbox} {
				q.Caller = drawbridge.Caller{Kind: kind, StartedBy: drawbridge.Agent, Agent: &drawbridge.AgentRights{Mode: mode}}
				if got := guard.Decide(t.Context(), q); got.Effect != c.want[i] {
					t.Errorf("%s in mode %s by %s: %+v, want %s", name, mode, kind, got, c.want[i])
				}
				q.Caller.Agent.Tools = [][]string{nil, {"other__*"}}
				if got := guard.Decide(t.Context(), q); got.Effect != drawbridge.Deny || !got.Hide {
					t.Errorf("%s, which the patterns leave out: %+v", name, got)
				}
			}
		}
		q.Caller = drawbridge.Caller{Kind: drawbridge.Agent, Agent: &drawbridge.AgentRights{Mode: "unknown"}}
		if got := guard.Decide(t.Context(), q); got.Effect == drawbridge.Ask {
			t.Errorf("%s in an unknown mode: %+v", name, got)
		}
		q.Caller = drawbridge.Caller{Kind: drawbridge.External}
		if got := guard.Decide(t.Context(), q); got.Effect != drawbridge.Allow {
			t.Errorf("%s of a client: %+v", name, got)
		}
	}
}
