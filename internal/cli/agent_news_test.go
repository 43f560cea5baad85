package cli

import (
	"errors"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/google/go-cmp/cmp"
)

// TestNewsIsToldOnce has a server fail at each of its starts, and a store that cannot be read for a while.
func TestNewsIsToldOnce(t *testing.T) {
	var told []string
	teller := newsTeller{tell: func(text string) { told = append(told, text) }, told: map[string]bool{}}
	phase := func(p drawbridge.ServerPhase) {
		row := drawbridge.ServerStatus{Server: "docs", Phase: p, Fault: "it ended"}
		teller.update(serverItems([]drawbridge.ServerStatus{row}), func(id drawbridge.ServerID) bool {
			return id == "docs" && p != drawbridge.Ready
		})
	}
	expect := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
		told = nil
	}
	fault := "The server docs does not work: it ended (/mcp test docs)"
	phase(drawbridge.Faulted)
	expect("the first fault", fault)
	phase(drawbridge.Connecting)
	phase(drawbridge.Faulted)
	expect("after another try")
	phase(drawbridge.Connecting)
	phase(drawbridge.Ready)
	phase(drawbridge.Faulted)
	expect("after it was ready", fault)
	for range 2 {
		teller.fail(errors.New("busy"))
	}
	phase(drawbridge.Faulted)
	expect("a short fault of the store")
	for range 9 {
		teller.fail(errors.New("damaged"))
	}
	expect("a lasting fault of the store", "What waits for you cannot be read: damaged")
	phase(drawbridge.Faulted)
	for range 3 {
		teller.fail(errors.New("damaged"))
	}
	expect("another fault of the store", "What waits for you cannot be read: damaged")
}
