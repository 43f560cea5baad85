package boundary

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// open returns the actor of a call that needs a capability.
func (w *Workspace) open(ctx context.Context, call drawbridge.Call, c workspace.Capability) (workspace.Actor, error) {
	actor, err := w.actor(ctx, call)
	if err != nil {
		return actor, err
	}
	return actor, asFault("read the workspace", actor.Require(c))
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
func (w *Workspace) Page(ctx context.Context, call drawbridge.Call, name string) (v workspace.PageView, err error) {
	if _, err = w.open(ctx, call, workspace.Read); err != nil {
		return v, err
	}
	if v, err = w.store.Page(ctx, name); err == nil {
		w.note(call.Caller, v.ID)
	}
	return v, err
}

// Children returns the pages below a page, or at the top.
func (w *Workspace) Children(ctx context.Context, call drawbridge.Call, parent workspace.ID, part workspace.Window) ([]workspace.Page, error) {
	if _, err := w.open(ctx, call, workspace.Read); err != nil {
		return nil, err
	}
	return w.store.Children(ctx, parent, part)
}

// Search returns the pages with all words of a query.
func (w *Workspace) Search(ctx context.Context, call drawbridge.Call, query string, part workspace.Window) ([]workspace.Hit, error) {
	if _, err := w.open(ctx, call, workspace.Read); err != nil {
		return nil, err
	}
	return w.store.Search(ctx, query, part)
}

// Links returns what leads to a page and away from it.
func (w *Workspace) Links(ctx context.Context, call drawbridge.Call, page workspace.PageView, part workspace.Window) (l workspace.PageLinks, err error) {
	if _, err = w.open(ctx, call, workspace.Read); err != nil {
		return l, err
	}
	if l.Backlinks, err = w.store.Backlinks(ctx, page.Slug, part); err != nil {
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
}

// Sources returns the sources of a revision, also of one that waits: entities, and what is outside of the workspace.
func (w *Workspace) Sources(ctx context.Context, call drawbridge.Call, revision workspace.ID) (ids []workspace.ID,
	outside []workspace.Reference, err error) {
	if _, err = w.open(ctx, call, workspace.Read); err != nil {
		return nil, nil, err
	}
	if ids, err = w.store.RevisionSources(ctx, revision); err != nil {
		return nil, nil, err
	}
	outside, err = w.store.OutsideSources(ctx, revision)
	return ids, outside, err
}

// History returns the revisions of an entity, or of a page and all that it has, the newest first.
func (w *Workspace) History(ctx context.Context, call drawbridge.Call, entity workspace.ID, part workspace.Window) ([]workspace.Revision, error) {
	if _, err := w.open(ctx, call, workspace.Read); err != nil {
		return nil, err
	}
	all, err := w.store.History(ctx, entity, part)
	w.note(call.Caller, entitiesOf(all)...)
	return all, err
}

// Revision returns the contents of a write.
func (w *Workspace) Revision(ctx context.Context, call drawbridge.Call, revision workspace.ID) ([]workspace.Revision, error) {
	if _, err := w.open(ctx, call, workspace.Read); err != nil {
		return nil, err
	}
	all, err := w.store.Revision(ctx, revision)
	w.note(call.Caller, entitiesOf(all)...)
	return all, err
}

func entitiesOf(all []workspace.Revision) []workspace.ID {
	ids := make([]workspace.ID, len(all))
	for i, r := range all {
		ids[i] = r.Entity
	}
	return ids
}

// Candidates returns the contents that wait for a decision, the oldest first.
func (w *Workspace) Candidates(ctx context.Context, call drawbridge.Call, part workspace.Window) ([]workspace.Revision, error) {
	if _, err := w.open(ctx, call, workspace.Read); err != nil {
		return nil, err
	}
	all, err := w.store.Candidates(ctx, part)
	w.note(call.Caller, entitiesOf(all)...)
	return all, err
}

// Deviations returns the open deviations, the oldest first.
func (w *Workspace) Deviations(ctx context.Context, call drawbridge.Call, part workspace.Window) ([]workspace.Deviation, error) {
	if _, err := w.open(ctx, call, workspace.Read); err != nil {
		return nil, err
	}
	return w.store.Deviations(ctx, part)
}

// Flags returns the entities whose sources have changed.
func (w *Workspace) Flags(ctx context.Context, call drawbridge.Call, part workspace.Window) ([]workspace.Flag, error) {
	if _, err := w.open(ctx, call, workspace.Read); err != nil {
		return nil, err
	}
	return w.store.Flags(ctx, part)
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
		w.note(call.Caller, item.ID)
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
	if _, err := w.open(ctx, call, workspace.Read); err != nil {
		return nil, err
	}
	return w.store.Attachments(ctx, page)
}

// AttachedBytes returns the bytes of an attachment.
func (w *Workspace) AttachedBytes(ctx context.Context, call drawbridge.Call, a workspace.Attachment) ([]byte, error) {
	if _, err := w.open(ctx, call, workspace.Read); err != nil {
		return nil, err
	}
	w.note(call.Caller, a.ID)
	return w.store.AttachedBytes(ctx, a.Digest)
}

// Grants returns the capabilities that principals were narrowed to.
func (w *Workspace) Grants(ctx context.Context, call drawbridge.Call) (map[string][]workspace.Capability, error) {
	if _, err := w.open(ctx, call, workspace.Read); err != nil {
		return nil, err
	}
	return w.store.Grants(ctx)
}
