package deck

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
	"github.com/google/go-cmp/cmp"
)

// TestFencedResults has who gets results marked as foreign text, on each way that a result takes.
func TestFencedResults(t *testing.T) {
	const answer = `{"content":[{"type":"text","text":"hi"}],"structuredContent":{"n":1.0}}`
	up := &fake{answer: func(drawbridge.ServerID, drawbridge.Call) (drawbridge.Result, error) {
		return drawbridge.Result{Raw: json.RawMessage(answer)}, nil
	}}
	agent := ada
	agent.Kind = drawbridge.Agent
	yes, no := true, false
	d := open(t, up, Options{Fence: func(c drawbridge.Caller) bool { return c.Principal == "bob" }, StateKeys: masters})
	members := []Member{{ID: "a", Row: "row-a", Fence: &yes}, {ID: "b", Row: "row-b"}, {ID: "c", Row: "row-c", Fence: &no}}
	if err := d.Configure(t.Context(), members); err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		l := legacyJobs(string(m.ID))
		l.Row = m.Row
		enrol(t, d, l)
	}
	bobs := stateful("bob")
	word := regexp.MustCompile(`TOOL_OUTPUT::[A-Z2-7]{26}::`)
	fenced := func(server, tool string) string {
		return `{"content":[{"type":"text","text":"[TOOL_OUTPUT::N::BEGIN server=` + server + ` tool=` + tool + `]\nhi\n[TOOL_OUTPUT::N::END]"}],"structuredContent":{"n":1.0}}`
	}
	for _, tt := range []struct {
		name   string
		caller drawbridge.Caller
		tool   string
		want   string
	}{
		{"the row says so", ada, "a__x", fenced("a", "x")},
		{"nobody says so", ada, "b__x", answer},
		{"the deck says so", bobs, "b__x", fenced("b", "x")},
		{"the row says no", bobs, "c__x", answer},
		{"a model of our own", agent, "b__x", fenced("b", "x")},
		{"a model of our own, and the row says no", agent, "c__x", answer},
	} {
		got, err := d.Call(t.Context(), drawbridge.Call{Caller: tt.caller, Params: objects("name", tt.tool)[0]})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.want, word.ReplaceAllString(string(got.Raw), "TOOL_OUTPUT::N::")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	ticket := ticketOf("ada", formOf(stateful("ada")), "a", "7")
	got, err := ask(t, d, stateful("ada"), wire.MethodTasksResult, `{"taskId":"$T"}`, ticket)
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(fenced("a", "task"), word.ReplaceAllString(got, "TOOL_OUTPUT::N::")); diff != "" {
		t.Errorf("the result of a task (-want +got):\n%s", diff)
	}
}
