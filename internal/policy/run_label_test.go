package policy

import (
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/flow"
)

// TestRunLabel checks conditions on the label of the caller's run. A rule that denies by the label hides nothing, since
// the label of a later call is not known.
func TestRunLabel(t *testing.T) {
	p, err := New(drawbridge.Rules{Default: drawbridge.Allow, Rules: []drawbridge.Rule{
		{Effect: drawbridge.Deny, Tools: []string{"bank__pay"}, When: `run.integrity == "untrusted" || run.confidentiality == "private"`}}})
	if err != nil {
		t.Fatal(err)
	}
	if !p.UsesRun() {
		t.Error("the rules do not look at the run")
	}
	spec := drawbridge.Spec{Server: "bank", Tool: "pay", Name: "bank__pay", Definition: []byte(`{"name":"bank__pay"}`)}
	caller := drawbridge.Caller{Kind: drawbridge.Agent, Principal: "ada"}
	for label, want := range map[flow.Label]drawbridge.Effect{
		flow.Clean: drawbridge.Allow,
		{Integrity: flow.Project, Confidentiality: flow.Internal}: drawbridge.Allow,
		{Integrity: flow.Untrusted}:                               drawbridge.Deny,
		{Integrity: flow.Trusted, Confidentiality: flow.Private}:  drawbridge.Deny,
	} {
		d := p.Decide(Request{Caller: caller, Kind: KindTool, Spec: spec, Method: "tools/call", Params: []byte(`{"name":"bank__pay"}`), Label: &label})
		if d.Effect != want || d.Hidden {
			t.Errorf("%s: %+v, want %s", label, d, want)
		}
	}
	if p.IsHidden(&caller, KindTool, &spec, "untrusted") {
		t.Error("the tool is hidden, although some runs may call it")
	}
}
