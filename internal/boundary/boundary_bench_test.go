//go:build bench

package boundary_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// TestBoundaryNumbers compares a write through the boundary with the same write to the store, in turns.
func TestBoundaryNumbers(t *testing.T) {
	w, db := open(t, filepath.Join(t.TempDir(), "w.db"))
	helper := drawbridge.Call{Caller: roles(0)[1].caller, Params: []byte(`{"name":"page_create","arguments":{"title":"x"}}`)}
	actor := workspace.Actor{Kind: workspace.AgentActor, Principal: "ann", Thread: "t", Run: "r",
		Capabilities: []workspace.Capability{workspace.Propose}}
	var through, straight []time.Duration
	for i := range 600 {
		change := workspace.CreatePage{Title: fmt.Sprint("Page ", i), Blocks: []workspace.NewBlock{{Type: "markdown", Text: "some text\n"}}}
		began := time.Now()
		if _, err := w.Cross(t.Context(), helper, writes, deck.PreparedWrite{}, []workspace.Change{change}); err != nil {
			t.Fatal(err)
		}
		through = append(through, time.Since(began))
		began = time.Now()
		write, err := workspace.NewWrite(actor, workspace.Proposal{Change: change, At: time.Now()})
		if err == nil {
			_, err = db.Apply(t.Context(), write)
		}
		if err != nil {
			t.Fatal(err)
		}
		straight = append(straight, time.Since(began))
	}
	slices.Sort(through)
	slices.Sort(straight)
	ratio := float64(through[300]) / float64(straight[300])
	t.Logf("through the boundary %v, straight %v: %.2f (bar 2)", through[300], straight[300], ratio)
	if ratio > 2 {
		t.Errorf("the ratio is %.2f, want at most 2", ratio)
	}
}
