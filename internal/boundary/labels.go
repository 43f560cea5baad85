package boundary

import (
	"cmp"
	"context"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/flow"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// note notes that a caller has read an entity with its present content, and its label. kind is "page", "memory" or
// "attachment"; names are those by which the settings may call it private, and people call it by the first one.
func (w *Workspace) note(ctx context.Context, caller drawbridge.Caller, id workspace.ID, kind string, names ...string) {
	label, _, _ := w.store.Label(ctx, id) // with an error the label is the lowest
	w.noteLabelled(caller, id, label, kind, names...)
}

// noteRevisions notes that a caller has read contents that entities have or had.
func (w *Workspace) noteRevisions(ctx context.Context, caller drawbridge.Caller, all []workspace.Revision) {
	names := map[workspace.ID][]string{} // by the page
	for _, r := range all {
		page := cmp.Or(r.Page, r.Entity)
		if _, known := names[page]; !known {
			names[page] = w.namesOf(ctx, page)
		}
		label, _, _ := w.store.RevisionLabel(ctx, r.Revision)
		w.noteLabelled(caller, r.Entity, label, string(r.Kind), names[page]...)
	}
}

// namesOf returns the title and the slug of a page; nil if an entity is none.
func (w *Workspace) namesOf(ctx context.Context, id workspace.ID) []string {
	if w.trail == nil || w.trail.Tracker == nil {
		return nil
	}
	v, err := w.store.Page(ctx, string(id))
	if err != nil {
		return nil
	}
	return []string{v.Title, v.Slug}
}

func (w *Workspace) noteLabelled(caller drawbridge.Caller, id workspace.ID, label flow.Label, kind string, names ...string) {
	if w.trail != nil && w.trail.Tracker != nil {
		label = label.Join(w.trail.Tracker.PageLabel(names...))
	}
	w.trail.AddLabelled(deck.RunOf(caller), deck.Source{Kind: deck.EntitySource, Name: string(id)}, label,
		strings.Join(append([]string{kind}, names[:min(len(names), 1)]...), " "))
}

// noteListed notes the labels of pages whose titles or parts a caller gets. The pages do not count as read.
func (w *Workspace) noteListed(ctx context.Context, caller drawbridge.Caller, pages ...workspace.Page) {
	if w.trail == nil || w.trail.Tracker == nil {
		return
	}
	for _, p := range pages {
		label, _, _ := w.store.Label(ctx, p.ID)
		label = label.Join(w.trail.Tracker.PageLabel(p.Title, p.Slug))
		if label.Taints() {
			w.trail.Tracker.SourceRead(deck.RunOf(caller), deck.Source{Kind: deck.EntitySource, Name: string(p.ID)}, label, "page "+p.Title)
		}
	}
}

// labelOfCall returns the label of the content that a call writes: the join of the labels of its texts. What a person
// writes needs none. An outside client may write what Drawbridge has not seen, so its content is untrusted.
func (w *Workspace) labelOfCall(call drawbridge.Call, actor workspace.Actor) (*flow.Label, string) {
	if actor.Kind == workspace.AuthorActor && !actor.Script {
		return nil, ""
	}
	label, origin := flow.Label{Integrity: flow.Trusted, Confidentiality: flow.Internal}, ""
	if actor.Kind == workspace.ClientActor || actor.Kind == workspace.ImportActor {
		label.Integrity, origin = flow.Untrusted, "client "+rawjson.GetString(call.Caller.Client, "name")
	}
	if w.trail == nil || w.trail.Tracker == nil {
		return &label, origin
	}
	run := deck.RunOf(call.Caller)
	for _, text := range flow.Values(rawjson.Get(call.Params, "arguments"), true) {
		of, from := w.trail.Tracker.LabelOf(run, text)
		if joined := label.Join(of); joined != label {
			label, origin = joined, from.String()
		}
	}
	return &label, origin
}
