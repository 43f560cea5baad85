package store_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// workspaceWriterName is the name of a test binary that is to import, write and promote for as long as it lives.
const workspaceWriterName = "workspace-writer"

// importedAtOnce is the number of pages of each of its imports.
const importedAtOnce = 5

// workspaceWriter writes to a workspace. It prints "import PREFIX", "wrote REVISION" and "promoted REVISION" as soon as
// the workspace has acknowledged it, and "refused ERROR" for an error. It stops after three of these.
func workspaceWriter(location, name string, limited bool) int {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return 1
	}
	ctx := context.Background()
	w, err := store.OpenWorkspace(ctx, location, store.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	apply := func(a workspace.Actor, all ...workspace.Change) (receipts []workspace.Receipt, err error) {
		writes := make([]workspace.Write, len(all))
		for i, c := range all {
			if writes[i], err = workspace.NewWrite(a, workspace.Proposal{Change: c, At: time.Now()}); err != nil {
				return nil, err
			}
		}
		return w.Apply(ctx, writes...)
	}
	if limited {
		if err := limitFiles(4 << 20); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	for i, refused := 0, 0; refused < 3; i++ {
		prefix := fmt.Sprintf("%s-%d", name, i)
		var pages []workspace.Change
		for n := range importedAtOnce {
			pages = append(pages, newPage(fmt.Sprintf("%s-%d", prefix, n), "one\n\n", strings.Repeat("two ", 500), "three\n"))
		}
		if _, err := apply(importer, pages...); err != nil {
			fmt.Println("refused", err)
			refused++
			continue
		}
		fmt.Println("import", prefix)
		made, err := apply(agent, newPage("agent "+prefix, "text"))
		if err != nil {
			fmt.Println("refused", err)
			refused++
			continue
		}
		fmt.Println("wrote", made[0].Revision)
		if _, err := apply(ann, workspace.Promote{Revision: made[0].Revision}); err != nil {
			fmt.Println("refused", err)
			refused++
			continue
		}
		fmt.Println("promoted", made[0].Revision)
	}
	return 0
}

// hear reads what a writer has said, at most most lines.
func hear(p process, most int, said map[string][]string) {
	for ; most > 0 && p.said.Scan(); most-- {
		verb, rest, _ := strings.Cut(p.said.Text(), " ")
		said[verb] = append(said[verb], rest)
	}
}

// wantAcknowledged checks that everything that was acknowledged is in the workspace, that pages are there whole, and
// that an import is there with all its pages or not at all.
func wantAcknowledged(t *testing.T, d desk, said map[string][]string) {
	t.Helper()
	for _, prefix := range said["import"] {
		for n := range importedAtOnce {
			d.page(fmt.Sprintf("%s-%d", prefix, n))
		}
	}
	accepted := map[string]bool{}
	for _, revision := range said["promoted"] {
		accepted[revision] = true
	}
	for _, revision := range said["wrote"] {
		all, err := d.Revision(t.Context(), workspace.ID(revision))
		if err != nil || len(all) != 2 {
			t.Errorf("revision %s: %+v, %v", revision, all, err)
		}
		for _, r := range all {
			if accepted[revision] && (r.Lifecycle != workspace.Canonical || r.AcceptedBy != "ann") {
				t.Errorf("the promotion of %s is not there: %+v", revision, r)
			}
		}
	}
	imports := map[string]int{}
	for offset := 0; ; offset += 1000 {
		pages, err := d.Children(t.Context(), "", workspace.Window{Offset: offset})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pages {
			v := d.page(string(p.ID))
			if v.Origin == workspace.Imported {
				imports[v.Title[:strings.LastIndex(v.Title, "-")]]++
				if len(v.Blocks) != 3 {
					t.Errorf("%s has %d blocks", v.Slug, len(v.Blocks))
				}
			}
			if hits, err := d.Search(t.Context(), v.Title, workspace.Window{Limit: 1}); err != nil || len(hits) == 0 {
				t.Errorf("%s is not found: %v", v.Slug, err)
			}
		}
		if len(pages) < 1000 {
			break
		}
	}
	for prefix, n := range imports {
		if n != importedAtOnce {
			t.Errorf("%d pages of the import %s", n, prefix)
		}
	}
}

// TestKilledWhileWritingPages kills processes at random points of an import, a write and a promotion.
func TestKilledWhileWritingPages(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		said := map[string][]string{}
		for round := range 6 {
			p := newChild(t, workspaceWriterName, location, fmt.Sprint("p", round), "")
			p.start.Close()
			if round > 0 { // the first dies while it opens
				hear(p, rand.IntN(30), said)
			}
			if err := p.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			hear(p, 1_000_000, said) // what it said before it died
			_ = p.Wait()             // it was killed
			wantAcknowledged(t, openDesk(t, location), said)
		}
		if len(said["promoted"]) == 0 || len(said["refused"]) > 0 {
			t.Errorf("%d were promoted, refused: %q", len(said["promoted"]), said["refused"])
		}
	})
}

// TestNoRoomForPages writes where a file may not become longer, as on a full disk. What was acknowledged is there.
func TestNoRoomForPages(t *testing.T) {
	if !canLimitFiles {
		t.Skip("this system does not limit the sizes of files")
	}
	location, said := filepath.Join(t.TempDir(), "w.db"), map[string][]string{}
	p := newChild(t, workspaceWriterName, location, "full", "limited")
	p.start.Close()
	hear(p, 1_000_000, said)
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	if len(said["refused"]) != 3 || len(said["import"]) == 0 || !strings.Contains(said["refused"][0], location) {
		t.Errorf("%d imports, refused: %q", len(said["import"]), said["refused"])
	}
	wantAcknowledged(t, openDesk(t, location), said)
}

// TestDamagedWorkspace writes over the middle of the file: the error names the file, and nothing is made anew.
func TestDamagedWorkspace(t *testing.T) {
	location := filepath.Join(t.TempDir(), "w.db")
	w, err := store.OpenWorkspace(t.Context(), location, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := desk{w, t}
	for i := range 50 {
		d.does(ann, newPage(fmt.Sprint("Page ", i), strings.Repeat("text ", 1000)))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	damage(t, location, func(f *os.File, size int64) error {
		_, err := f.WriteAt([]byte(strings.Repeat("damage! ", int(size-4096)/8)), 4096)
		return err
	})
	read := func() error {
		w, err := store.OpenWorkspace(t.Context(), location, store.Options{})
		if err != nil {
			return err
		}
		defer w.Close()
		_, err = w.Page(t.Context(), "page-7")
		return err
	}
	if err := read(); err == nil || !strings.Contains(err.Error(), location) || faultOf(err).Code == drawbridge.NotFound {
		t.Errorf("%v", err)
	}
}
