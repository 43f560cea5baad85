package store_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

var (
	observer = workspace.Actor{Kind: workspace.ClientActor, Principal: "client:x", Declared: workspace.Observed,
		Capabilities: []workspace.Capability{workspace.Propose}}
	importer = workspace.Actor{Kind: workspace.ImportActor, Principal: "ann", Capabilities: []workspace.Capability{workspace.Import}}
)

// TestPromotionOfStaleContent: the content that a person accepts in its place must be the one that the person has seen.
func TestPromotionOfStaleContent(t *testing.T) {
	onEachWorkspace(t, func(t *testing.T, d desk) {
		p := d.does(ann, newPage("Plan", "A\n")).Entity
		offered := d.does(agent, workspace.SetBlock{Page: p, Slot: "b1", Text: "A and more\n"})
		own := d.does(ann, workspace.SetBlock{Page: p, Slot: "b1", Text: "B\n"})
		for _, over := range []workspace.ID{"", offered.Revision, "none"} {
			_, err := d.try(ann, workspace.Promote{Revision: offered.Revision, Over: over})
			if faultOf(err).Code != drawbridge.InvalidInput || !strings.Contains(err.Error(), string(own.Revision)) {
				t.Errorf("over %q: %v", over, err)
			}
		}
		if got := d.page("plan").Text(); got != "B\n" {
			t.Errorf("the text is %q", got)
		}
		d.does(ann, workspace.Promote{Revision: offered.Revision, Over: own.Revision})
		if got := d.page("plan").Text(); got != "A and more\n" {
			t.Errorf("the text is %q", got)
		}
	})
}

// TestRemovalNeedsTheRightOfReplacement: an agent and a script do not retire what a person wrote or accepted.
func TestRemovalNeedsTheRightOfReplacement(t *testing.T) {
	onEachWorkspace(t, func(t *testing.T, d desk) {
		p := d.does(ann, newPage("Canon", "truth\n")).Entity
		block := d.page("canon").Blocks[0].ID
		script, full := ann, agent
		script.Script, script.Run = true, "r"
		full.Capabilities = []workspace.Capability{"*"}
		for _, a := range []workspace.Actor{script, full} {
			if _, err := d.try(a, workspace.Retire{Entity: block}); faultOf(err).Code != drawbridge.PolicyBlocked {
				t.Errorf("%s: %v", a.Kind, err)
			}
		}
		d.does(ann, workspace.Retire{Entity: block})
		if r := d.does(agent, workspace.SetBlock{Page: p, Slot: "b1", Text: "lie\n"}); !r.Waiting {
			t.Errorf("an agent replaced what a person retired: %+v", r)
		}
		if got := d.page("canon").Text(); got != "" {
			t.Errorf("the text is %q", got)
		}
	})
}

// TestTheSameTextKeepsItsOrigin: who repeats a text does not take it over; a person who repeats it accepts it.
func TestTheSameTextKeepsItsOrigin(t *testing.T) {
	onEachWorkspace(t, func(t *testing.T, d desk) {
		made := d.does(observer, newPage("Seen", "seen\n"))
		same := workspace.SetBlock{Page: made.Page, Slot: "b1", Text: "seen\n"}
		if r := d.does(agent, same); r.Revision != made.Revision || r.Waiting {
			t.Errorf("an agent repeated it: %+v", r)
		}
		if b := d.page("seen").Blocks[0]; b.Origin != workspace.Observed || b.Lifecycle != workspace.Draft {
			t.Errorf("the block is %+v", b)
		}
		d.does(ann, same)
		b := d.page("seen").Blocks[0]
		if b.Origin != workspace.Observed || b.Lifecycle != workspace.Canonical || b.Revision != made.Revision {
			t.Errorf("accepted: %+v", b)
		}
		history, err := d.History(t.Context(), b.ID, workspace.Window{})
		if err != nil || len(history) != 1 || history[0].AcceptedBy != "ann" {
			t.Errorf("the history is %+v, %v", history, err)
		}
	})
}

// TestImportedTextWaits: what a person imported is replaced by a person only.
func TestImportedTextWaits(t *testing.T) {
	onEachWorkspace(t, func(t *testing.T, d desk) {
		p := d.does(importer, newPage("Notes", "mine\n")).Entity
		for _, a := range []workspace.Actor{observer, agent} {
			if r := d.does(a, workspace.SetBlock{Page: p, Slot: "b1", Text: a.Kind.String()}); !r.Waiting || r.Deviation != "" {
				t.Errorf("%s: %+v", a.Kind, r)
			}
		}
		if r := d.does(ann, workspace.SetBlock{Page: p, Slot: "b1", Text: "new\n"}); r.Waiting {
			t.Errorf("the person waits: %+v", r)
		}
	})
}

// TestBlocksOnACanonicalPage: what an agent adds is not part of the accepted text until a person accepts it.
func TestBlocksOnACanonicalPage(t *testing.T) {
	onEachWorkspace(t, func(t *testing.T, d desk) {
		p := d.does(ann, workspace.CreatePage{Title: "Plan", Blocks: []workspace.NewBlock{{Slot: "b2", Type: "markdown", Text: "one\n"},
			{Type: "markdown", Text: "two\n"}}}).Entity
		added := d.does(agent, workspace.AddBlock{Page: p, Block: workspace.NewBlock{Type: "markdown", Text: "zero\n"}})
		v := d.page("plan")
		if v.Text() != "one\ntwo\n" || v.ProposedText() != "zero\none\ntwo\n" {
			t.Errorf("the text is %q, with the proposed ones %q", v.Text(), v.ProposedText())
		}
		d.does(ann, workspace.Promote{Revision: added.Revision})
		if v := d.page("plan"); v.Text() != "zero\none\ntwo\n" {
			t.Errorf("the text is %q", v.Text())
		}
	})
}

// TestFlagsFollowChains flags over pages, not over contents that were replaced or rejected.
func TestFlagsFollowChains(t *testing.T) {
	onEachWorkspace(t, func(t *testing.T, d desk) {
		ctx := t.Context()
		source := d.does(ann, newPage("Source", "s\n")).Entity
		middle := d.does(agent, newPage("Middle", "m\n")).Entity
		block := d.does(agent, workspace.SetBlock{Page: middle, Slot: "b1", Text: "from the source\n"}, source).Entity
		top := d.does(agent, newPage("Top", "t\n"), middle).Entity
		if r := d.does(ann, workspace.SetBlock{Page: source, Slot: "b1", Text: "s2\n"}); r.Flagged != 2 {
			t.Errorf("%d were flagged, want 2: %+v", r.Flagged, r)
		}
		for _, name := range []string{"middle", "top"} {
			if v := d.page(name); len(v.Flags) != 1 {
				t.Errorf("the flags of %s are %+v", name, v.Flags)
			}
		}
		all, err := d.Flags(ctx, workspace.Window{})
		if err != nil || len(all) != 2 || all[0].Page != middle && all[0].Page != top {
			t.Errorf("the flags are %+v, %v", all, err)
		}
		d.does(ann, workspace.Revalidate{Entity: block})
		d.does(ann, workspace.Revalidate{Entity: top})
		if r := d.does(ann, workspace.DeletePage{Page: source}); r.Flagged != 2 {
			t.Errorf("the deletion of a source flagged %d", r.Flagged)
		}
		d.does(ann, workspace.RestorePage{Page: source})

		own := d.does(ann, newPage("Own", "own\n")).Entity
		offered := d.does(agent, workspace.SetBlock{Page: own, Slot: "b1", Text: "x\n"}, top)
		if got, err := d.Sources(ctx, offered.Entity); err != nil || len(got) != 0 {
			t.Errorf("content that waits is derived from %v, %v", got, err)
		}
		d.does(ann, workspace.Reject{Revision: offered.Revision})
		d.does(agent, workspace.SetBlock{Page: middle, Slot: "b1", Text: "from elsewhere\n"})
		if got, err := d.Derived(ctx, source); err != nil || len(got) != 0 {
			t.Errorf("replaced content is derived: %v, %v", got, err)
		}
		if v := d.page("middle"); v.Standing != 1 {
			t.Errorf("the standing is %d", v.Standing)
		}
	})
}

// TestARejectedPageIsDeleted and comes back when the person accepts it after all.
func TestARejectedPageIsDeleted(t *testing.T) {
	onEachWorkspace(t, func(t *testing.T, d desk) {
		ctx := t.Context()
		made := d.does(agent, newPage("Idea", "uniqueword\n"))
		found := func() int {
			hits, err := d.Search(ctx, "uniqueword", workspace.Window{})
			if err != nil {
				t.Error(err)
			}
			return len(hits)
		}
		d.does(ann, workspace.Reject{Revision: made.Revision})
		if all, err := d.Children(ctx, "", workspace.Window{}); err != nil || len(all) != 0 || found() != 0 {
			t.Errorf("the pages are %+v, %v", all, err)
		}
		d.does(ann, workspace.Promote{Revision: made.Revision})
		if v := d.page("idea"); v.Deleted || v.Text() != "uniqueword\n" || found() != 1 {
			t.Errorf("the page is %+v", v)
		}
	})
}

// TestTagsAndPropertiesAreEntities: they have a history, are promoted, and are removed as they are written.
func TestTagsAndPropertiesAreEntities(t *testing.T) {
	onEachWorkspace(t, func(t *testing.T, d desk) {
		p := d.does(ann, newPage("Page")).Entity
		tagged := d.does(agent, workspace.SetTag{Page: p, Tag: "z"})
		d.does(ann, workspace.Promote{Revision: tagged.Revision})
		if v := d.page("page"); len(v.Tags) != 1 || v.Tags[0].Lifecycle != workspace.Canonical || v.Tags[0].Origin != workspace.AgentProduced {
			t.Errorf("the tags are %+v", v.Tags)
		}
		removal := d.does(agent, workspace.SetTag{Page: p, Tag: "z", Remove: true})
		d.does(ann, workspace.Promote{Revision: removal.Revision})
		if v := d.page("page"); len(v.Tags) != 0 {
			t.Errorf("the tags are %+v", v.Tags)
		}
		if r := d.does(ann, workspace.SetTag{Page: p, Tag: "z"}); r.Entity != tagged.Entity {
			t.Errorf("the tag is another entity: %+v", r)
		}
		due := workspace.SetProperty{Page: p, Name: "due", Type: workspace.DateProperty, Values: []string{"2026-01-02"}}
		first := d.does(ann, due)
		due.Values = nil
		if _, err := d.try(ann, workspace.SetProperty{Page: p, Name: "none", Type: workspace.TextProperty}); faultOf(err).Code != drawbridge.NotFound {
			t.Errorf("a property that does not exist was removed: %v", err)
		}
		d.does(ann, due)
		if v := d.page("page"); len(v.Properties) != 0 {
			t.Errorf("the properties are %+v", v.Properties)
		}
		if history, err := d.History(t.Context(), first.Entity, workspace.Window{}); err != nil || len(history) != 2 {
			t.Errorf("the history is %+v, %v", history, err)
		}
	})
}

// TestReferencesOfARevision writes a page with sources outside of the workspace.
func TestReferencesOfARevision(t *testing.T) {
	onEachWorkspace(t, func(t *testing.T, d desk) {
		want := workspace.Reference{Kind: "result", Name: "read_mail", Server: "mail"}
		w, err := workspace.NewWrite(agent, workspace.Proposal{Change: newPage("Ref"), At: time.Now(), References: []workspace.Reference{want}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := d.Apply(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := d.OutsideSources(t.Context(), r[0].Revision); err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("the references are %+v, %v", got, err)
		}
		if _, err := d.History(t.Context(), "", workspace.Window{}); faultOf(err).Code != drawbridge.InvalidInput {
			t.Errorf("the history of nothing: %v", err)
		}
	})
}

// TestLargePagesAreIndexed has more words than an index of Postgres takes.
func TestLargePagesAreIndexed(t *testing.T) {
	onEachWorkspace(t, func(t *testing.T, d desk) {
		var b strings.Builder
		b.WriteString("release v1.2.3 of example.com by joe@mail.org\n")
		for i := 0; b.Len() < 900_000; i++ {
			fmt.Fprintf(&b, "https://host%d.example.org/path%d\n", i, i)
		}
		d.does(ann, newPage("Large", b.String()))
		for _, query := range []string{"v1.2.3", "example.com", "mail", "host17 path", "large release"} {
			if hits, err := d.Search(t.Context(), query, workspace.Window{Limit: -1}); err != nil || len(hits) != 1 {
				t.Errorf("%s: %d, %v", query, len(hits), err)
			}
		}
	})
}

// TestScrubbedTextIsGone looks for the texts of everything that a page had in the files of the workspace.
func TestScrubbedTextIsGone(t *testing.T) {
	location := filepath.Join(t.TempDir(), "w.db")
	d := openDesk(t, location)
	const secret = "hunter2xyz"
	page := newPage("Title "+secret, "text "+secret+" and [[link-"+secret+"]]\n")
	page.Head = "---\nkey: " + secret + "\n---\n"
	made := d.does(ann, page)
	p := made.Entity
	all := []workspace.ID{made.Revision}
	for _, c := range []workspace.Change{
		workspace.SetTag{Page: p, Tag: secret},
		workspace.SetProperty{Page: p, Name: "key", Type: workspace.TextProperty, Values: []string{secret}},
		workspace.Attach{Page: p, Name: secret, Type: "text/csv", Data: []byte(secret)},
		workspace.SetMemory{Tier: workspace.WorkspaceTier, Name: "key", Text: secret},
	} {
		all = append(all, d.does(ann, c).Revision)
	}
	waits := d.does(agent, workspace.SetBlock{Page: p, Slot: "b1", Text: "another " + secret})
	all = append(all, waits.Revision)
	inFile := func() bool {
		for _, name := range []string{location, location + "-wal"} {
			if data, err := os.ReadFile(name); err == nil && bytes.Contains(bytes.ToLower(data), []byte(secret)) {
				return true
			}
		}
		return false
	}
	if !inFile() {
		t.Fatal("the text was never in the file")
	}
	d.does(ann, workspace.ScrubText{Revisions: all})
	if inFile() {
		t.Error("the text is in the file after the scrub")
	}
	if _, err := d.try(ann, workspace.Promote{Revision: waits.Revision}); faultOf(err).Code != drawbridge.InvalidInput {
		t.Errorf("scrubbed content was promoted: %v", err)
	}
	if open, err := d.Deviations(t.Context(), workspace.Window{}); err != nil || len(open) != 0 {
		t.Errorf("the deviations are %+v, %v", open, err)
	}
	if hits, err := d.Search(t.Context(), secret, workspace.Window{}); err != nil || len(hits) != 0 {
		t.Errorf("the text is found: %+v, %v", hits, err)
	}
	v := d.page(string(p))
	if v.Head != "" || strings.Contains(fmt.Sprint(v), secret) {
		t.Errorf("the page is %+v", v)
	}
}

// TestAWorkspaceBesideAStore opens both at one location.
func TestAWorkspaceBesideAStore(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		db, err := store.Open(t.Context(), location, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		d := openDesk(t, location)
		d.does(ann, newPage("Page", "text"))
		again, err := store.Open(t.Context(), location, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if got := d.page("page").Text(); got != "text" {
			t.Errorf("the text is %q", got)
		}
	})
}
