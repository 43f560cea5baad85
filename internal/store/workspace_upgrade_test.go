package store_test

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
	"github.com/google/go-cmp/cmp"
)

// earlierWorkspace returns the path of a copy of a workspace that the release before its schema 2 wrote: an agent noted
// memory from a page of the web and a result, and wrote the page "frogs" from the memory.
func earlierWorkspace(t *testing.T) string {
	t.Helper()
	packed, err := os.Open(filepath.Join("testdata", "workspace1.db.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	in, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "workspace.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAnEarlierWorkspaceOpens: what an earlier release wrote has no digests, and new writes have them.
func TestAnEarlierWorkspaceOpens(t *testing.T) {
	d := openDesk(t, earlierWorkspace(t))
	items, err := d.Memory(t.Context(), workspace.WorkspaceTier, "")
	if err != nil || len(items) != 1 {
		t.Fatalf("%d items, %v", len(items), err)
	}
	old, err := d.OutsideSources(t.Context(), items[0].Revision)
	want := []workspace.Reference{{Kind: "page", Name: "https://example.com/frogs"},
		{Kind: "result", Name: "notes__read_note", Server: "notes"}}
	if diff := cmp.Diff(want, old); diff != "" || err != nil {
		t.Errorf("sources (-want +got):\n%s%v", diff, err)
	}
	fresh := []workspace.Reference{{Kind: "result", Name: "notes__read_note", Server: "notes", Digest: workspace.Digest("x"),
		Call: "01JDZ0000000000000000000AB"}}
	w, err := workspace.NewWrite(agent, workspace.Proposal{Change: newPage("Toads", "Brown."), References: fresh, At: time.Now(),
		Call: "01JDZ0000000000000000000AC", Tool: "page_create"})
	if err != nil {
		t.Fatal(err)
	}
	receipts, err := d.Apply(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.OutsideSources(t.Context(), receipts[0].Revision)
	if diff := cmp.Diff(fresh, got); diff != "" || err != nil {
		t.Errorf("sources (-want +got):\n%s%v", diff, err)
	}
}
