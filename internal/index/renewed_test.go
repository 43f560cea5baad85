package index_test

import (
	"fmt"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/google/go-cmp/cmp"
)

// TestAllDocumentsAreOthers has every document go and as many others come, at once and one after the other, again and
// again: what is found is what is found where they alone ever were.
func TestAllDocumentsAreOthers(t *testing.T) {
	x := index.New(index.Options{})
	x.Update(desk(), nil)
	gone := ids(find(x, "list read file mail weather search directory issue", 50))
	if len(gone) != x.Len() {
		t.Fatalf("%d of %d", len(gone), x.Len())
	}
	for round := range 5 {
		var others []index.Document
		for i := range 3 + round {
			others = append(others, tool("s", fmt.Sprintf("send_letter_%d_%d", round, i),
				"Sends one long letter to all of the people."))
		}
		if round%2 == 1 {
			x.Update(nil, gone)
			gone = nil
		}
		x.Update(others, gone)
		want := index.New(index.Options{})
		want.Update(others, nil)
		if diff := cmp.Diff(find(want, "send a long letter", 20), find(x, "send a long letter", 20)); diff != "" {
			t.Fatalf("round %d: %s", round, diff)
		}
		gone = nil
		for _, d := range others {
			gone = append(gone, d.ID)
		}
	}
}
