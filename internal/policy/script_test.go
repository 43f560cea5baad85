package policy

import (
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
)

// TestAScriptGetsNoRightsOfItsOwn has rules about kinds judge the calls of scripts.
func TestAScriptGetsNoRightsOfItsOwn(t *testing.T) {
	for _, tt := range []struct {
		effect  drawbridge.Effect
		kinds   string
		started drawbridge.CallerKind
		matches bool
	}{
		{allow, "external", drawbridge.External, true},
		{allow, "sandbox", drawbridge.External, false}, // its caller may not
		{allow, "author", drawbridge.External, false},
		{deny, "external", drawbridge.External, true},
		{deny, "sandbox", drawbridge.External, true},
		{ask, "sandbox", drawbridge.Author, true},
		{deny, "author", drawbridge.External, false},
	} {
		q := call("fs", "x", `{}`)
		q.Caller.Kind, q.Caller.StartedBy = drawbridge.Sandbox, tt.started
		fallback := deny
		if tt.effect == deny {
			fallback = allow
		}
		got := compiled(t, fallback, drawbridge.Rule{Effect: tt.effect, Kinds: []string{tt.kinds}}).Decide(q)
		if matched := got.Rule == 1; matched != tt.matches {
			t.Errorf("%v for %s, a script of %v: it matches: %v", tt.effect, tt.kinds, tt.started, matched)
		}
	}
}

// TestExpressionsAboutScripts has expressions about the kind of a caller judge the calls of scripts.
func TestExpressionsAboutScripts(t *testing.T) {
	for _, tt := range []struct {
		effect  drawbridge.Effect
		when    string
		matches bool
	}{
		{deny, `caller.kind == "external"`, true},
		{deny, `caller.kind == "sandbox"`, true},
		{deny, `caller.kind == "author"`, false},
		{ask, `caller.kind == "sandbox" && caller.principal == "ada"`, true},
		{allow, `caller.kind == "external"`, true},
		{allow, `caller.kind == "sandbox"`, false},
		{allow, `caller.kind != "external"`, false},
	} {
		q := call("fs", "x", `{}`)
		q.Caller.Kind, q.Caller.StartedBy = drawbridge.Sandbox, drawbridge.External
		fallback := deny
		if tt.effect == deny {
			fallback = allow
		}
		got := compiled(t, fallback, drawbridge.Rule{Effect: tt.effect, When: tt.when}).Decide(q)
		if matched := got.Rule == 1; matched != tt.matches {
			t.Errorf("%v when %s: it matches: %v", tt.effect, tt.when, matched)
		}
	}
}
