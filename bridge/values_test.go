package bridge

import (
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/google/go-cmp/cmp"
)

func TestValuesThatCommandsGive(t *testing.T) {
	p, err := NewPool(Options{})
	if err != nil {
		t.Fatal(err)
	}
	row := config.Server{ID: "a", Command: "a", Phase: drawbridge.Idle, Commands: []string{"env GIVEN", "env MISSING"}, Env: []config.Pair{
		{Name: "PLAIN", Value: "!not a command"}, {Name: "GIVEN", Value: "!echo given"}, {Name: "MISSING", Value: "!exit 3"},
	}}
	e := newEndpoint(p, row, "", Part{})
	want := []config.Pair{{Name: "PLAIN", Value: "!not a command"}, {Name: "GIVEN", Value: "given"}}
	if diff := cmp.Diff(want, e.values(t.Context(), "env", row.Env)); diff != "" {
		t.Error(diff)
	}
	if notes := strings.Join(e.status().Notes, "\n"); !strings.Contains(notes, "env MISSING is left out: the command ended with exit status 3") {
		t.Errorf("the status notes %q", notes)
	}
}
