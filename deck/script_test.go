package deck

import (
	"context"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// scriptOf is a script that a caller started.
func scriptOf(caller drawbridge.Caller) drawbridge.Caller {
	caller.StartedBy, caller.Kind = caller.Kind, drawbridge.Sandbox
	return caller
}

func TestWhichToolsScriptsMayCall(t *testing.T) {
	d := open(t, &fake{}, Options{}, listing("a", "x"), listing("b", "y"))
	if err := d.Configure(t.Context(), []Server{{ID: "a", ConfigHash: "row-a"},
		{ID: "b", ConfigHash: "row-b", NotForScripts: true}}); err != nil {
		t.Fatal(err)
	}
	enrol(t, d, listing("b", "y"))
	names := func(caller drawbridge.Caller) (out []string) {
		for _, s := range d.Items(caller, mcp.MethodToolsList) {
			out = append(out, string(s.Name))
		}
		return out
	}
	wantList(t, names(ada), "a__x", "b__y")
	wantList(t, names(scriptOf(ada)), "a__x")
	wantList(t, names(scriptOf(bob))) // bob holds the scope of b only
	wantList(t, names(drawbridge.Caller{Kind: drawbridge.Sandbox, Scopes: []drawbridge.Scope{"*"}}))
	wantFault(t, call(t, d, scriptOf(ada), "b__y"), drawbridge.NotFound, "unknown tool b__y")
	if err := call(t, d, scriptOf(ada), "a__x"); err != nil {
		t.Error(err)
	}
	whole, err := d.List(t.Context(), ada, mcp.MethodToolsList)
	if err != nil || len(whole.Items) != 2 {
		t.Errorf("ada is listed %d tools, %v", len(whole.Items), err)
	}
	part, err := d.List(t.Context(), scriptOf(ada), mcp.MethodToolsList)
	if err != nil || len(part.Items) != 1 {
		t.Errorf("a script is listed %d tools, %v", len(part.Items), err)
	}
}

// A plainApprover knows nothing of scripts.
type plainApprover struct{}

func (plainApprover) Approve(context.Context, ApprovalRequest) (ApprovalAnswer, error) {
	return ApprovalAnswer{}, nil
}

// A scriptApprover covers calls whose targets have not changed.
type scriptApprover struct{ plainApprover }

func (scriptApprover) ApproveScript(context.Context, ScriptApproval) (ApprovalAnswer, error) {
	return ApprovalAnswer{}, nil
}

func (scriptApprover) UseScriptGrant(_ context.Context, a ScriptApproval) (ApprovalAnswer, bool, error) {
	return ApprovalAnswer{ID: "grant"}, a.StillValid(), nil
}

func TestGrantsForCallsOfScripts(t *testing.T) {
	for _, tt := range []struct {
		name     string
		approver Approver
		changed  bool
		want     bool
	}{
		{"a grant", scriptApprover{}, false, true},
		{"a grant for a tool that changed", scriptApprover{}, true, false},
		{"an approver that knows no scripts", plainApprover{}, false, false},
		{"no approver", nil, false, false},
	} {
		d := open(t, &fake{}, Options{Approver: tt.approver}, listing("a", "x"))
		answer, granted, err := d.UseScriptGrant(t.Context(), ScriptApproval{Requests: []ApprovalRequest{
			{StillValid: func() bool { return !tt.changed }}}})
		if granted != tt.want || tt.want != (answer.ID == "grant" && granted) || err != nil {
			t.Errorf("%s: %+v, %v, %v", tt.name, answer, granted, err)
		}
	}
}
