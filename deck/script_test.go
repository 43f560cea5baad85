package deck

import (
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
