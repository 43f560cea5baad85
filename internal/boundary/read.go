package boundary

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// read reads the workspace for an actor that holds the capability to read.
func read[T any](ctx context.Context, w *Workspace, call drawbridge.Call, get func(actor workspace.Actor) (T, error)) (result T, err error) {
	actor, err := w.actor(ctx, call)
	if err == nil {
		err = asFault("read the workspace", actor.Require(workspace.Read))
	}
	if err != nil {
		return result, err
	}
	return get(actor)
}

// listedPages returns pages as lists show them: without the text before the first block, which only a read of the page
// shows.
func (w *Workspace) listedPages(ctx context.Context, caller drawbridge.Caller, all []workspace.Page, err error) ([]workspace.Page, error) {
	for i := range all {
		all[i].Head = ""
	}
	w.noteListed(ctx, caller, all...)
	return all, err
}

// shown returns the revisions that an actor may read, and notes that the caller has read them. Those of memory in
// places of others are left out.
func (w *Workspace) shown(ctx context.Context, call drawbridge.Call, actor workspace.Actor, all []workspace.Revision, err error) (
	[]workspace.Revision, error) {
	if err != nil {
		return nil, err
	}
	mayRead := map[workspace.ID]bool{}
	var found []workspace.Revision
	for _, r := range all {
		if r.Kind == workspace.MemoryKind {
			if _, known := mayRead[r.Entity]; !known {
				item, err := w.store.MemoryItem(ctx, r.Entity)
				if err != nil {
					return nil, err
				}
				mayRead[r.Entity] = workspace.MemoryPlace{Tier: item.Tier, Key: item.Key}.CheckRead(actor) == nil
			}
			if !mayRead[r.Entity] {
				continue
			}
		}
		found = append(found, r)
	}
	w.noteRevisions(ctx, call.Caller, found)
	return found, nil
}

// Access returns what a caller is in the workspace, and the name of the workspace.
func (w *Workspace) Access(ctx context.Context, call drawbridge.Call) (string, workspace.Actor, error) {
	actor, err := w.actor(ctx, call)
	return w.name, actor, err
}

// Resolve returns the ID of an entity: name is an ID, or the slug of a page. It does not count as read.
func (w *Workspace) Resolve(ctx context.Context, call drawbridge.Call, name string) (workspace.ID, error) {
	actor, err := w.actor(ctx, call)
	if err != nil {
		return "", err
	}
	if !actor.May(workspace.Read) && !actor.May(workspace.Propose) && !actor.May(workspace.Author) {
		return "", asFault("find an entity", actor.Require(workspace.Read))
	}
	return w.store.Resolve(ctx, name)
}

// Page returns a page by its ID or its slug.
func (w *Workspace) Page(ctx context.Context, call drawbridge.Call, name string) (workspace.PageView, error) {
	return read(ctx, w, call, func(workspace.Actor) (workspace.PageView, error) {
		v, err := w.store.Page(ctx, name)
		if err == nil {
			w.note(ctx, call.Caller, v.ID, "page", v.Title, v.Slug)
		}
		return v, err
	})
}

// Children returns the pages below a page, or at the top.
func (w *Workspace) Children(ctx context.Context, call drawbridge.Call, parent workspace.ID, part workspace.Window) ([]workspace.Page, error) {
	return read(ctx, w, call, func(workspace.Actor) ([]workspace.Page, error) {
		all, err := w.store.Children(ctx, parent, part)
		return w.listedPages(ctx, call.Caller, all, err)
	})
}

// Search returns the pages with all words of a query.
func (w *Workspace) Search(ctx context.Context, call drawbridge.Call, query string, part workspace.Window) ([]workspace.Hit, error) {
	return read(ctx, w, call, func(workspace.Actor) ([]workspace.Hit, error) {
		all, err := w.store.Search(ctx, query, part)
		for i := range all {
			all[i].Head = ""
			w.noteListed(ctx, call.Caller, all[i].Page)
		}
		return all, err
	})
}

// Links returns what leads to a page and away from it.
func (w *Workspace) Links(ctx context.Context, call drawbridge.Call, page workspace.PageView, part workspace.Window) (workspace.PageLinks, error) {
	return read(ctx, w, call, func(workspace.Actor) (l workspace.PageLinks, err error) {
		back, err := w.store.Backlinks(ctx, page.Slug, part)
		if l.Backlinks, err = w.listedPages(ctx, call.Caller, back, err); err != nil {
			return l, err
		}
		l.Links = workspace.Links(page.ProposedText())
		if l.Sources, err = w.store.Sources(ctx, page.ID); err != nil {
			return l, err
		}
		if l.Derived, err = w.store.Derived(ctx, page.ID); err != nil {
			return l, err
		}
		l.Outside, err = w.store.OutsideSources(ctx, page.Revision)
		return l, err
	})
}

// Sources returns the sources of a revision, also of one that waits: entities, and what is outside of the workspace.
func (w *Workspace) Sources(ctx context.Context, call drawbridge.Call, revision workspace.ID) (ids []workspace.ID,
	outside []workspace.Reference, err error) {
	ids, err = read(ctx, w, call, func(workspace.Actor) ([]workspace.ID, error) { return w.store.RevisionSources(ctx, revision) })
	if err != nil {
		return nil, nil, err
	}
	outside, err = w.store.OutsideSources(ctx, revision)
	return ids, outside, err
}

// Why returns who wrote an entity and from what it was made; see the method of the store. Memory in places of others is
// withheld. It does not count as read.
func (w *Workspace) Why(ctx context.Context, call drawbridge.Call, name string, o workspace.WhyOptions) (*workspace.Why, error) {
	return read(ctx, w, call, func(actor workspace.Actor) (*workspace.Why, error) {
		o.MayRead = func(place workspace.MemoryPlace) bool { return place.CheckRead(actor) == nil }
		return w.store.Why(ctx, name, o)
	})
}

// History returns the revisions of an entity, or of a page and all that it has, the newest first.
func (w *Workspace) History(ctx context.Context, call drawbridge.Call, entity workspace.ID, part workspace.Window) ([]workspace.Revision, error) {
	return read(ctx, w, call, func(actor workspace.Actor) ([]workspace.Revision, error) {
		all, err := w.store.History(ctx, entity, part)
		return w.shown(ctx, call, actor, all, err)
	})
}

// Revision returns the contents of a write.
func (w *Workspace) Revision(ctx context.Context, call drawbridge.Call, revision workspace.ID) ([]workspace.Revision, error) {
	return read(ctx, w, call, func(actor workspace.Actor) ([]workspace.Revision, error) {
		all, err := w.store.Revision(ctx, revision)
		return w.shown(ctx, call, actor, all, err)
	})
}

// Candidates returns the contents that wait for a decision, the oldest first.
func (w *Workspace) Candidates(ctx context.Context, call drawbridge.Call, part workspace.Window) ([]workspace.Revision, error) {
	return read(ctx, w, call, func(actor workspace.Actor) ([]workspace.Revision, error) {
		all, err := w.store.Candidates(ctx, part)
		return w.shown(ctx, call, actor, all, err)
	})
}

// Deviations returns the open deviations, the oldest first.
func (w *Workspace) Deviations(ctx context.Context, call drawbridge.Call, part workspace.Window) ([]workspace.Deviation, error) {
	return read(ctx, w, call, func(workspace.Actor) ([]workspace.Deviation, error) { return w.store.Deviations(ctx, part) })
}

// Flags returns the entities whose sources have changed.
func (w *Workspace) Flags(ctx context.Context, call drawbridge.Call, part workspace.Window) ([]workspace.Flag, error) {
	return read(ctx, w, call, func(workspace.Actor) ([]workspace.Flag, error) { return w.store.Flags(ctx, part) })
}

// Memory returns the items of a tier.
func (w *Workspace) Memory(ctx context.Context, call drawbridge.Call, place workspace.MemoryPlace) ([]workspace.MemoryItem, error) {
	actor, err := w.actor(ctx, call)
	if err != nil {
		return nil, err
	}
	if err := place.CheckRead(actor); err != nil {
		return nil, asFault("read memory", err)
	}
	all, err := w.store.Memory(ctx, place.Tier, place.Key)
	for _, item := range all {
		w.note(ctx, call.Caller, item.ID, "memory", item.Name)
	}
	return all, err
}

// ImportedPage returns the page below parent that was imported from a file, and whether there is one. It does not count
// as read.
func (w *Workspace) ImportedPage(ctx context.Context, call drawbridge.Call, file string, parent workspace.ID) (v workspace.PageView, found bool, err error) {
	actor, err := w.actor(ctx, call)
	if err != nil {
		return v, false, err
	}
	if err := actor.Require(workspace.Import); err != nil {
		return v, false, asFault("find an imported page", err)
	}
	id, err := w.store.ImportedPage(ctx, file, parent)
	if err != nil || id == "" {
		return v, false, err
	}
	v, err = w.store.Page(ctx, string(id))
	return v, err == nil, err
}

// Attachments returns the files of a page.
func (w *Workspace) Attachments(ctx context.Context, call drawbridge.Call, page workspace.ID) ([]workspace.Attachment, error) {
	return read(ctx, w, call, func(workspace.Actor) ([]workspace.Attachment, error) { return w.store.Attachments(ctx, page) })
}

// AttachedBytes returns the bytes of an attachment.
func (w *Workspace) AttachedBytes(ctx context.Context, call drawbridge.Call, a workspace.Attachment) ([]byte, error) {
	return read(ctx, w, call, func(workspace.Actor) ([]byte, error) {
		w.note(ctx, call.Caller, a.ID, "attachment", append([]string{a.Name}, w.namesOf(ctx, a.Page)...)...)
		return w.store.AttachedBytes(ctx, a.Digest)
	})
}

// Grants returns the capabilities that principals were narrowed to.
func (w *Workspace) Grants(ctx context.Context, call drawbridge.Call) (map[string][]workspace.Capability, error) {
	return read(ctx, w, call, func(workspace.Actor) (map[string][]workspace.Capability, error) { return w.store.Grants(ctx) })
}
