package store_test

import (
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
	"github.com/google/go-cmp/cmp"
)

// writeFrom makes a write of a run with sources and references.
func (d desk) writeFrom(a workspace.Actor, call string, c workspace.Change, sources []workspace.ID, references ...workspace.Reference) workspace.Receipt {
	d.t.Helper()
	w, err := workspace.NewWrite(a, workspace.Proposal{Change: c, Sources: sources, References: references, At: time.Now(), Call: call,
		Tool: "tool"})
	if err != nil {
		d.t.Fatal(err)
	}
	receipts, err := d.Apply(d.t.Context(), w)
	if err != nil {
		d.t.Fatal(err)
	}
	return receipts[0]
}

// outline is a tree of sources in short: the kind and the name of each node, with its sources.
func outline(w *workspace.Why) []any {
	all := []any{w.Kind + " " + w.Name}
	if w.Shown {
		all = append(all, "shown")
	}
	if w.LeftOut > 0 {
		all = append(all, w.LeftOut)
	}
	for _, s := range w.Sources {
		all = append(all, outline(s))
	}
	return all
}

var helper = workspace.Actor{Kind: workspace.AgentActor, Principal: "ann", Thread: "t", Run: "r1",
	Capabilities: []workspace.Capability{workspace.Read, workspace.Propose, workspace.Remember}}

// TestWhy follows sources over several steps, back to the contents that were read.
func TestWhy(t *testing.T) {
	onEachWorkspace(t, func(t *testing.T, d desk) {
		why := func(name string, o workspace.WhyOptions) *workspace.Why {
			t.Helper()
			got, err := d.Why(t.Context(), name, o)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		memory := d.writeFrom(helper, "call1", workspace.SetMemory{Tier: workspace.WorkspaceTier, Name: "frogs", Text: "Green."}, nil,
			workspace.Reference{Kind: "page", Name: "https://example.com/frogs", Digest: workspace.Digest("web"), Call: "call0"})
		page := d.writeFrom(helper, "call2", newPage("Frogs", "They are green.\n", "They jump.\n"), []workspace.ID{memory.Entity},
			workspace.Reference{Kind: "result", Name: "notes__read", Server: "notes", Digest: workspace.Digest("result"), Call: "call1b"})
		// The memory changes, and is then made from the page: the page was made from the earlier text.
		d.writeFrom(helper, "call3", workspace.SetMemory{Tier: workspace.WorkspaceTier, Name: "frogs", Text: "Green, and they jump."},
			[]workspace.ID{page.Entity})
		block := d.page("frogs").Blocks[1]
		d.writeFrom(helper, "call4", workspace.SetBlock{Page: block.Page, Slot: block.Slot, Text: "They jump far.\n"}, nil,
			workspace.Reference{Kind: "file", Name: "/notes/jumps.txt", Digest: workspace.Digest("file")})

		got := why("frogs", workspace.WhyOptions{})
		want := []any{"page Frogs",
			[]any{"block b2", []any{"file /notes/jumps.txt"}},
			[]any{"memory workspace/frogs", []any{"web page https://example.com/frogs"}},
			[]any{"result notes__read"}}
		if diff := cmp.Diff(want, outline(got)); diff != "" {
			t.Errorf("frogs (-want +got):\n%s", diff)
		}
		if w := got.Written; w.Tool != "tool" || w.Call != "call2" || w.Actor != "agent" || w.Thread != "t" || w.Run != "r1" {
			t.Errorf("written: %+v", w)
		}
		if got.Digest != workspace.Digest(d.page("frogs").ProposedText()) {
			t.Errorf("the digest of the page is %s", got.Digest)
		}
		noted := got.Sources[1]
		if noted.State != "past" || noted.Digest != workspace.Digest("Green.") || noted.Written.Call != "call1" {
			t.Errorf("the memory as it was: %+v", noted)
		}
		if web := noted.Sources[0]; web.Digest != workspace.Digest("web") || web.Call != "call0" {
			t.Errorf("the web page: %+v", web)
		}
		want = []any{"memory workspace/frogs", []any{"page Frogs",
			[]any{"memory workspace/frogs", []any{"web page https://example.com/frogs"}}, []any{"result notes__read"}}}
		if diff := cmp.Diff(want, outline(why(string(memory.Entity), workspace.WhyOptions{}))); diff != "" {
			t.Errorf("memory (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]any{"block b2", []any{"file /notes/jumps.txt"}}, outline(why("frogs#b2", workspace.WhyOptions{}))); diff != "" {
			t.Errorf("block (-want +got):\n%s", diff)
		}
		want = []any{"page Frogs", 2, []any{"block b2", 1}}
		if diff := cmp.Diff(want, outline(why("frogs", workspace.WhyOptions{Depth: 1, Width: 1}))); diff != "" {
			t.Errorf("bounded (-want +got):\n%s", diff)
		}
		hidden := why("frogs", workspace.WhyOptions{MayRead: func(workspace.MemoryPlace) bool { return false }})
		if got := outline(hidden.Sources[1]); !cmp.Equal(got, []any{"withheld "}) {
			t.Errorf("hidden memory: %v", got)
		}
		if _, err := d.Why(t.Context(), "frogs#b9", workspace.WhyOptions{}); err == nil {
			t.Error("a block that does not exist was found")
		}
	})
}

// TestWhyEnds: a cycle of sources ends, and a content with several ways to it is listed once.
func TestWhyEnds(t *testing.T) {
	onEachWorkspace(t, func(t *testing.T, d desk) {
		a := d.does(agent, newPage("A", "a\n"))
		b := d.does(agent, newPage("B", "b\n"), a.Entity)
		c := d.does(agent, newPage("C", "c\n"), a.Entity, b.Entity)
		d.does(agent, workspace.Derive{Entity: a.Entity}, c.Entity)
		got, err := d.Why(t.Context(), "c", workspace.WhyOptions{})
		if err != nil {
			t.Fatal(err)
		}
		n, shown := 0, 0
		for node := range got.All() {
			n++
			if node.Shown {
				shown++
			}
		}
		if n > 6 || shown == 0 {
			t.Errorf("%d nodes, %d of them shown elsewhere: %v", n, shown, outline(got))
		}
	})
}
