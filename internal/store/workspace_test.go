package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
	"github.com/google/go-cmp/cmp"
)

var (
	ann   = workspace.Actor{Kind: workspace.AuthorActor, Principal: "ann", Capabilities: []workspace.Capability{"*"}}
	agent = workspace.Actor{Kind: workspace.AgentActor, Principal: "ann", Thread: "t", Run: "r1",
		Capabilities: []workspace.Capability{workspace.Read, workspace.Propose}}
)

// A desk is a workspace under test.
type desk struct {
	*store.Workspace
	t testing.TB
}

func openDesk(t testing.TB, location string) desk {
	t.Helper()
	w, err := store.OpenWorkspace(t.Context(), location, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return desk{w, t}
}

// try makes a write of an actor.
func (d desk) try(a workspace.Actor, c workspace.Change, sources ...workspace.ID) (workspace.Receipt, error) {
	d.t.Helper()
	w, err := workspace.NewWrite(a, workspace.Proposal{Change: c, Sources: sources, At: time.Now()})
	if err != nil {
		return workspace.Receipt{}, err
	}
	receipts, err := d.Apply(d.t.Context(), w)
	if err != nil {
		return workspace.Receipt{}, err
	}
	return receipts[0], nil
}

func (d desk) does(a workspace.Actor, c workspace.Change, sources ...workspace.ID) workspace.Receipt {
	d.t.Helper()
	r, err := d.try(a, c, sources...)
	if err != nil {
		d.t.Fatalf("%#v: %v", c, err)
	}
	return r
}

func (d desk) page(name string) workspace.PageView {
	d.t.Helper()
	v, err := d.Page(d.t.Context(), name)
	if err != nil {
		d.t.Fatal(err)
	}
	return v
}

func newPage(title string, texts ...string) workspace.CreatePage {
	c := workspace.CreatePage{Title: title}
	for _, text := range texts {
		c.Blocks = append(c.Blocks, workspace.NewBlock{Type: "markdown", Text: text})
	}
	return c
}

// onEachWorkspace runs a test on SQLite, and on Postgres if there is one.
func onEachWorkspace(t *testing.T, test func(t *testing.T, d desk)) {
	onEach(t, func(t *testing.T, location string) { test(t, openDesk(t, location)) })
}

// TestWorkedExample is the example of the design: an agent reads pages and writes a summary of them, a source changes,
// and a person accepts the summary.
func TestWorkedExample(t *testing.T) {
	onEachWorkspace(t, func(t *testing.T, d desk) {
		ctx := t.Context()
		var sources []workspace.ID
		for i := range 3 {
			sources = append(sources, d.does(ann, newPage(fmt.Sprintf("Source %d", i), "fact\n")).Entity)
		}
		made := d.does(agent, newPage("Summary", "three facts\n"), sources...)
		v := d.page("summary")
		if v.Origin != workspace.AgentProduced || v.Lifecycle != workspace.Candidate || v.Run != "r1" || v.Flags != nil {
			t.Errorf("the summary is %+v", v)
		}
		slices.Sort(sources)
		if got, err := d.Sources(ctx, made.Entity); err != nil || !slices.Equal(got, sources) {
			t.Errorf("the sources are %v, %v; want %v", got, err, sources)
		}
		if got, err := d.Derived(ctx, sources[0]); err != nil || !slices.Equal(got, []workspace.ID{made.Entity}) {
			t.Errorf("derived from the source: %v, %v", got, err)
		}
		r := d.does(ann, workspace.SetBlock{Page: sources[1], Slot: "b1", Text: "another fact\n"})
		if r.Flagged != 1 || r.Waiting {
			t.Errorf("the change of a source returned %+v", r)
		}
		if v := d.page("summary"); len(v.Flags) != 1 || v.Flags[0].Source != r.Entity {
			t.Errorf("the flags are %+v", v.Flags)
		}
		if r := d.does(ann, workspace.SetBlock{Page: sources[1], Slot: "b1", Text: "another fact\n"}); r.Flagged != 0 {
			t.Errorf("the same text flagged %d", r.Flagged)
		}
		d.does(ann, workspace.Revalidate{Entity: made.Entity})
		d.does(ann, workspace.Promote{Revision: made.Revision})
		v = d.page("summary")
		if v.Lifecycle != workspace.Canonical || v.Origin != workspace.AgentProduced || v.Blocks[0].Lifecycle != workspace.Canonical ||
			v.Flags != nil {
			t.Errorf("the accepted summary is %+v", v)
		}
		history, err := d.History(ctx, made.Entity, workspace.Window{})
		if err != nil || len(history) != 2 || history[0].AcceptedBy != "ann" {
			t.Errorf("the history is %+v, %v", history, err)
		}
	})
}

// TestContentOfAPersonStays lets an agent write over what a person wrote: it waits, and the person decides.
func TestContentOfAPersonStays(t *testing.T) {
	onEachWorkspace(t, func(t *testing.T, d desk) {
		ctx := t.Context()
		p := d.does(ann, newPage("Plan", "the plan\n")).Entity
		change := d.does(agent, workspace.SetBlock{Page: p, Slot: "b1", Text: "a better plan\n"})
		if !change.Waiting || change.Deviation == "" || d.page("plan").Text() != "the plan\n" {
			t.Errorf("%+v, the text is %q", change, d.page("plan").Text())
		}
		if all, err := d.Deviations(ctx, workspace.Window{}); err != nil || len(all) != 1 || all[0].Revision != change.Revision {
			t.Errorf("the deviations are %+v, %v", all, err)
		}
		if all, err := d.Candidates(ctx, workspace.Window{}); err != nil || len(all) != 1 || all[0].Text != "a better plan\n" || all[0].State != "waiting" {
			t.Errorf("the candidates are %+v, %v", all, err)
		}
		other := d.does(agent, workspace.SetBlock{Page: p, Slot: "b1", Text: "a worse plan\n"})
		d.does(ann, workspace.Reject{Revision: other.Revision})
		d.does(ann, workspace.Promote{Revision: change.Revision})
		v := d.page("plan")
		if b := v.Blocks[0]; v.Text() != "a better plan\n" || b.Origin != workspace.AgentProduced || b.Lifecycle != workspace.Canonical {
			t.Errorf("after the promotion: %+v", v)
		}
		if all, err := d.Deviations(ctx, workspace.Window{}); err != nil || len(all) != 0 {
			t.Errorf("the deviations are %+v, %v", all, err)
		}
		for _, c := range []workspace.Change{workspace.Promote{Revision: other.Revision}, workspace.Reject{Revision: other.Revision},
			workspace.Reject{Revision: change.Revision}, workspace.Promote{Revision: "none"}} {
			if _, err := d.try(ann, c); err == nil {
				t.Errorf("%+v was carried out", c)
			}
		}
	})
}

func TestPagesOfAWorkspace(t *testing.T) {
	onEachWorkspace(t, func(t *testing.T, d desk) {
		ctx := t.Context()
		folder := d.does(ann, workspace.CreatePage{Title: "Folder", Folder: true}).Entity
		first, second := newPage("Same", "links to [[folder]]\n"), newPage("Same")
		first.Parent = folder
		p, q := d.does(ann, first).Entity, d.does(ann, second).Entity
		if d.page("same").ID != p || d.page("same-2").ID != q {
			t.Error("the slugs are not same and same-2")
		}
		for _, c := range []workspace.Change{workspace.CreatePage{Title: "x", Slug: "same"}, workspace.MovePage{Page: folder, Parent: p},
			workspace.SetBlock{Page: p, Slot: "b1", Base: "older"}, workspace.AddBlock{Page: p, Block: workspace.NewBlock{Slot: "b1", Type: "markdown"}},
			workspace.SetTitle{Page: "none", Title: "x"}, workspace.RestorePage{Page: p}, workspace.SetTag{Page: p, Tag: "none", Remove: true},
			workspace.CreatePage{Title: "x", Parent: "none"}, workspace.Derive{Entity: p}, workspace.Revalidate{Entity: p}} {
			if _, err := d.try(ann, c); err == nil {
				t.Errorf("%+v was carried out", c)
			}
		}
		if _, err := d.try(agent, newPage("Derived"), "none"); err == nil {
			t.Error("a source that does not exist was accepted")
		}
		if all, err := d.Backlinks(ctx, "folder", workspace.Window{}); err != nil || len(all) != 1 || all[0].ID != p {
			t.Errorf("the links are %+v, %v", all, err)
		}
		d.does(ann, workspace.SetTitle{Page: p, Title: "Renamed"})
		d.does(ann, workspace.SetTag{Page: p, Tag: "b"})
		d.does(ann, workspace.SetTag{Page: p, Tag: "a"})
		d.does(ann, workspace.SetProperty{Page: p, Name: "due", Type: workspace.DateProperty, Values: []string{"2026-05-01"}})
		if _, err := d.try(ann, workspace.SetProperty{Page: q, Name: "due", Type: workspace.TextProperty}); err == nil {
			t.Error("the type of a property changed")
		}
		if r := d.does(agent, workspace.SetTag{Page: p, Tag: "a", Remove: true}); !r.Waiting || r.Deviation == "" {
			t.Errorf("an agent removed the tag of a person: %+v", r)
		}
		d.does(agent, workspace.SetTag{Page: q, Tag: "c"})
		d.does(agent, workspace.SetTag{Page: q, Tag: "c", Remove: true})
		v := d.page(string(p))
		if v.Title != "Renamed" || v.Slug != "same" || len(v.Tags) != 2 || v.Tags[0].Tag != "a" || v.Tags[1].Tag != "b" || len(v.Properties) != 1 ||
			v.Properties[0].Values[0] != "2026-05-01" {
			t.Errorf("the page is %+v", v)
		}
		d.does(ann, workspace.DeletePage{Page: p})
		if all, err := d.Children(ctx, folder, workspace.Window{}); err != nil || len(all) != 0 {
			t.Errorf("below the folder: %+v, %v", all, err)
		}
		if _, err := d.try(ann, workspace.SetTitle{Page: p, Title: "y"}); err == nil {
			t.Error("a deleted page was renamed")
		}
		d.does(ann, workspace.RestorePage{Page: p})
		if all, err := d.Children(ctx, folder, workspace.Window{}); err != nil || len(all) != 1 {
			t.Errorf("below the folder: %+v, %v", all, err)
		}
	})
}

func TestBlocksStayInOrder(t *testing.T) {
	onEachWorkspace(t, func(t *testing.T, d desk) {
		p := d.does(ann, newPage("Page", "a", "b")).Entity
		add := func(after, text string) {
			d.does(ann, workspace.AddBlock{Page: p, After: after, Block: workspace.NewBlock{Slot: "s" + text, Type: "markdown", Text: text}})
		}
		add("", "0")
		var reversed string
		for i := range 30 { // more often than a gap can be halved
			text := string(rune('A' + i))
			reversed = text + reversed
			add("b1", text)
		}
		if got, want := d.page("page").Text(), "0a"+reversed+"b"; got != want {
			t.Errorf("the text is %q, want %q", got, want)
		}
		d.does(ann, workspace.MoveBlock{Page: p, Slot: "b1", After: "b2"})
		if got, want := d.page("page").Text(), "0"+reversed+"ba"; got != want {
			t.Errorf("the text is %q, want %q", got, want)
		}
	})
}

func TestSearchOfAWorkspace(t *testing.T) {
	onEachWorkspace(t, func(t *testing.T, d desk) {
		d.does(ann, newPage("Castle gates", "a drawbridge over water\n"))
		d.does(ann, newPage("Water", "nothing else\n"))
		gone := d.does(ann, newPage("Water castle", "gone\n"))
		d.does(ann, workspace.DeletePage{Page: gone.Entity})
		find := func(query string) (titles []string) {
			hits, err := d.Search(t.Context(), query, workspace.Window{Limit: 10})
			if err != nil {
				t.Error(err)
			}
			for _, h := range hits {
				titles = append(titles, h.Title)
			}
			return titles
		}
		if got := find("water"); !slices.Equal(got, []string{"Water", "Castle gates"}) {
			t.Errorf("water: %q", got)
		}
		for query, want := range map[string][]string{"castle draw": {"Castle gates"}, "WATER nothing": {"Water"}, "gone": nil,
			`"OR NEAR(`: nil, "a' & |": {"Castle gates"}, "Càstle": {"Castle gates"}} {
			if got := find(query); !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", query, got, want)
			}
		}
		if _, err := d.Search(t.Context(), " !? ", workspace.Window{}); err == nil {
			t.Error("a query without words was accepted")
		}
		d.does(ann, workspace.SetBlock{Page: d.page("water").ID, Slot: "b1", Text: "ice\n"})
		if got := find("nothing"); got != nil {
			t.Errorf("the earlier text is found: %q", got)
		}
	})
}

// TestWritesAreWholeOrNothing applies writes of which the last one fails.
func TestWritesAreWholeOrNothing(t *testing.T) {
	onEachWorkspace(t, func(t *testing.T, d desk) {
		good, err := workspace.NewWrite(ann, workspace.Proposal{Change: newPage("Good", "text"), At: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		bad, err := workspace.NewWrite(ann, workspace.Proposal{Change: workspace.DeletePage{Page: "none"}, At: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.Apply(t.Context(), good, bad)
		if f := faultOf(err); f.Code != drawbridge.NotFound || !strings.Contains(err.Error(), "write 2 of 2") {
			t.Errorf("%v", err)
		}
		if _, err := d.Page(t.Context(), "good"); faultOf(err).Code != drawbridge.NotFound {
			t.Errorf("the first write was kept: %v", err)
		}
		if _, err := d.Apply(t.Context(), workspace.Write{}); faultOf(err).Code != drawbridge.PolicyBlocked {
			t.Errorf("a write that NewWrite did not make: %v", err)
		}
	})
}

// TestRandomWrites makes random writes of several actors at the same time. The invariants hold afterwards, and after
// the workspace was opened again.
func TestRandomWrites(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		d := openDesk(t, location)
		page := d.does(ann, newPage("Page", "a", "b", "c")).Entity
		var working sync.WaitGroup
		for n := range 4 {
			working.Go(func() { d.writeAtRandom(page, rand.New(rand.NewPCG(uint64(n), 1)), fmt.Sprint("w", n)) })
		}
		working.Wait()
		before := wantInvariants(t, d, page)
		if strings.Contains(location, "://") {
			return
		}
		if diff := cmp.Diff(before, wantInvariants(t, openDesk(t, location), page)); diff != "" {
			t.Error(diff)
		}
	})
}

// writeAtRandom makes writes of several actors to a page. Some of them are refused.
func (d desk) writeAtRandom(page workspace.ID, random *rand.Rand, name string) {
	script, client := agent, observer
	script.Script = true
	client.Declared = workspace.AgentProduced
	actors := []workspace.Actor{ann, agent, script, observer, client, importer}
	var last workspace.ID
	for i := range 60 {
		actor := actors[random.IntN(len(actors))]
		text := fmt.Sprintf("%s %s.%d", actor.Kind, name, i)
		slot := fmt.Sprintf("b%d", 1+random.IntN(3))
		var c workspace.Change
		switch random.IntN(9) {
		case 0:
			c = newPage(text, text)
		case 1:
			c = workspace.SetTag{Page: page, Tag: slot, Remove: random.IntN(2) == 0}
		case 2:
			c = workspace.SetProperty{Page: page, Name: slot, Type: workspace.TextProperty, Values: []string{text}[:random.IntN(2)]}
		case 3:
			c = workspace.Promote{Revision: last}
		case 4:
			c = workspace.Reject{Revision: last}
		case 5:
			c = workspace.Retire{Entity: d.page(string(page)).Blocks[random.IntN(3)].ID}
		default:
			c = workspace.SetBlock{Page: page, Slot: slot, Text: text}
		}
		r, err := d.try(actor, c)
		if f := faultOf(err); f.Code == drawbridge.ServerError {
			d.t.Errorf("%T: %v", c, err)
		}
		if r.Revision != "" {
			last = r.Revision
		}
	}
}

// wantInvariants checks that each entity of a page has one current revision, which is its content, and that canonical
// content of an agent was accepted by a person.
func wantInvariants(t *testing.T, d desk, page workspace.ID) []workspace.Revision {
	t.Helper()
	v := d.page(string(page))
	history, err := d.History(context.WithoutCancel(t.Context()), page, workspace.Window{})
	if err != nil || len(history) == 1000 {
		t.Fatal(len(history), err)
	}
	current := map[workspace.ID]workspace.Revision{}
	for _, r := range history {
		if r.State == "current" {
			if _, twice := current[r.Entity]; twice {
				t.Errorf("two current revisions of %s", r.Entity)
			}
			current[r.Entity] = r
		}
		if !r.Origin.Valid() || !r.Lifecycle.Valid() || r.By == "" || r.At.IsZero() || r.Origin == workspace.AgentProduced && r.Run == "" &&
			r.By != "client:x" {
			t.Errorf("without provenance: %+v", r)
		}
		if r.Lifecycle == workspace.Canonical && (r.Origin != workspace.Authored || r.Run != "") && r.AcceptedBy == "" {
			t.Errorf("canonical without a person: %+v", r)
		}
		if r.Digest != workspace.Digest(r.Text) {
			t.Errorf("the digest of %+v", r)
		}
	}
	for _, b := range v.Blocks {
		if r := current[b.ID]; r.Text != b.Text || r.Stamp != b.Stamp {
			t.Errorf("the block %+v has the revision %+v", b, r)
		}
	}
	for _, tag := range v.Tags {
		if r := current[tag.ID]; r.Text != tag.Tag || r.Stamp != tag.Stamp {
			t.Errorf("the tag %+v has the revision %+v", tag, r)
		}
	}
	for _, p := range v.Properties {
		if r := current[p.ID]; !strings.Contains(r.Text, p.Values[0]) || r.Stamp != p.Stamp {
			t.Errorf("the property %+v has the revision %+v", p, r)
		}
	}
	return history
}

func faultOf(err error) drawbridge.Fault {
	f, _ := err.(*drawbridge.Fault)
	if f == nil {
		return drawbridge.Fault{}
	}
	return *f
}

// TestImportedTextIsKept splits a file, writes it as an import and reads it again.
func TestImportedTextIsKept(t *testing.T) {
	d := openDesk(t, filepath.Join(t.TempDir(), "w.db"))
	text := "---\ntags: [a]\n---\n\n# Title\n\nfirst\n\n```\ncode\n\nmore\n```\n\n\nlast"
	head, blocks := workspace.SplitMarkdown(text)
	c := newPage(workspace.TitleOf(text, "file.md"), blocks...)
	c.Head = head
	d.does(workspace.Actor{Kind: workspace.ImportActor, Principal: "ann", Capabilities: []workspace.Capability{workspace.Import}}, c)
	v := d.page("title")
	if v.Text() != text || v.Origin != workspace.Imported || v.Lifecycle != workspace.Draft || len(v.Blocks) != 4 {
		t.Errorf("the page is %+v", v)
	}
}

func TestMemoryOfAWorkspace(t *testing.T) {
	onEachWorkspace(t, func(t *testing.T, d desk) {
		ctx := t.Context()
		mindful := agent
		mindful.Capabilities = []workspace.Capability{workspace.Remember}
		item := func(tier workspace.Tier, key, text string) workspace.SetMemory {
			return workspace.SetMemory{Tier: tier, Key: key, Name: "style", Text: text}
		}
		own := d.does(mindful, item(workspace.ConversationTier, "t", "short sentences")).Entity
		more := item(workspace.ConversationTier, "t", ", no riddles")
		more.Append = true
		d.does(mindful, more)
		seen := workspace.Actor{Kind: workspace.ClientActor, Principal: "client:x", Thread: "t", Declared: workspace.Observed,
			Capabilities: []workspace.Capability{workspace.Remember}}
		heard := d.does(seen, workspace.SetMemory{Tier: workspace.ConversationTier, Key: "t", Name: "heard", Text: "obey me"}).Entity
		all, err := d.Memory(ctx, workspace.ConversationTier, "t")
		if err != nil || len(all) != 2 || all[1].Text != "short sentences, no riddles" || all[1].ID != own {
			t.Errorf("the memory is %+v, %v", all, err)
		}
		upward := workspace.Summarise{From: []workspace.ID{own, heard}, SetMemory: item(workspace.WorkspaceTier, "", "both")}
		if _, err := d.try(mindful, upward); faultOf(err).Code != drawbridge.InvalidInput {
			t.Errorf("a tier was left out: %v", err)
		}
		upward.SetMemory = item(workspace.ChannelTier, "c", "both")
		sum := d.does(mindful, upward)
		all, err = d.Memory(ctx, workspace.ChannelTier, "c")
		if err != nil || len(all) != 1 || all[0].Origin != workspace.Observed {
			t.Errorf("the summary of something observed is %+v, %v", all, err)
		}
		if got, err := d.Sources(ctx, sum.Entity); err != nil || len(got) != 2 {
			t.Errorf("the sources are %v, %v", got, err)
		}
		stranger := mindful
		stranger.Thread = "u"
		if _, err := d.try(stranger, upward); faultOf(err).Code != drawbridge.PolicyBlocked {
			t.Errorf("another conversation was summarised: %v", err)
		}
		d.does(ann, item(workspace.AccountTier, "ann", "the person's own"))
		if r := d.does(mindful, item(workspace.AccountTier, "ann", "the agent's")); !r.Waiting {
			t.Errorf("an agent replaced what a person wrote: %+v", r)
		}
		kept := d.does(ann, item(workspace.WorkspaceTier, "", "the person's")).Entity
		if _, err := d.try(mindful, workspace.Forget{Entity: kept}); faultOf(err).Code != drawbridge.PolicyBlocked {
			t.Errorf("an agent removed what a person wrote: %v", err)
		}
		d.does(mindful, workspace.Forget{Entity: heard})
		if all, err := d.Memory(ctx, workspace.ConversationTier, "t"); err != nil || len(all) != 1 {
			t.Errorf("the memory is %+v, %v", all, err)
		}
		d.does(ann, workspace.ScrubText{Revisions: []workspace.ID{sum.Revision}})
		if all, err := d.Memory(ctx, workspace.ChannelTier, "c"); err != nil || all[0].Text != "" {
			t.Errorf("the memory is %+v, %v", all, err)
		}
		history, err := d.History(ctx, sum.Entity, workspace.Window{})
		if err != nil || history[0].Text != "" || history[0].Digest != workspace.Digest("both") {
			t.Errorf("the history is %+v, %v", history, err)
		}
		for _, c := range []workspace.Change{workspace.Forget{Entity: "none"}, workspace.ScrubText{Revisions: []workspace.ID{"none"}}} {
			if _, err := d.try(ann, c); faultOf(err).Code != drawbridge.NotFound {
				t.Errorf("%+v: %v", c, err)
			}
		}
	})
}

func TestAttachmentsAndGrants(t *testing.T) {
	onEachWorkspace(t, func(t *testing.T, d desk) {
		ctx := t.Context()
		p, q := d.does(ann, newPage("A")).Entity, d.does(ann, newPage("B")).Entity
		file := workspace.Attach{Page: p, Name: "a.png", Type: "image/png", Data: []byte("png")}
		first := d.does(agent, file)
		file.Page = q
		second := d.does(ann, file)
		all, err := d.Attachments(ctx, p)
		if err != nil || len(all) != 1 || all[0].Size != 3 || all[0].Lifecycle != workspace.Candidate {
			t.Fatalf("the attachments are %+v, %v", all, err)
		}
		d.does(ann, workspace.Promote{Revision: first.Revision})
		if again, err := d.Attachments(ctx, p); err != nil || again[0].Lifecycle != workspace.Canonical {
			t.Errorf("after the promotion: %+v, %v", again, err)
		}
		if data, err := d.AttachedBytes(ctx, all[0].Digest); err != nil || string(data) != "png" {
			t.Errorf("%q, %v", data, err)
		}
		d.does(ann, workspace.ScrubText{Revisions: []workspace.ID{second.Revision}})
		if data, err := d.AttachedBytes(ctx, all[0].Digest); err != nil || string(data) != "png" {
			t.Errorf("the bytes of the other attachment: %q, %v", data, err)
		}
		d.does(ann, workspace.ScrubText{Revisions: []workspace.ID{first.Revision}})
		if _, err := d.AttachedBytes(ctx, all[0].Digest); faultOf(err).Code != drawbridge.NotFound {
			t.Errorf("the bytes after the scrub: %v", err)
		}
		d.does(ann, workspace.SetGrant{Principal: "bob", Capabilities: []workspace.Capability{workspace.Read}})
		want := map[string][]workspace.Capability{"bob": {workspace.Read}}
		if got, err := d.Grants(ctx); err != nil || !cmp.Equal(got, want) {
			t.Errorf("the grants are %v, %v", got, err)
		}
		d.does(ann, workspace.SetGrant{Principal: "bob"})
		if got, err := d.Grants(ctx); err != nil || len(got) != 1 || len(got["bob"]) != 0 {
			t.Errorf("the grants are %v, %v", got, err)
		}
	})
}
