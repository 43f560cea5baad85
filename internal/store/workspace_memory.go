package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// attach adds a file to a page. The bytes of equal files are stored once.
func (a *application) attach(c workspace.Attach) error {
	a.receipt.Entity, a.receipt.Page = a.newID(), c.Page
	if err := a.wantPage(c.Page); err != nil {
		return err
	}
	digest := workspace.Digest(string(c.Data))
	if err := a.exec("INSERT INTO files (digest, bytes) VALUES ($1, $2) ON CONFLICT (digest) DO NOTHING", digest, c.Data); err != nil {
		return err
	}
	if err := a.addRevision(content{a.receipt.Entity, c.Page, workspace.AttachmentKind, digest}, currentRevision, ""); err != nil {
		return err
	}
	return a.insert("attachments", "id, page, name, type, digest, size", string(a.receipt.Entity), string(c.Page), c.Name, c.Type,
		digest, len(c.Data))
}

// setGrant replaces the capabilities of a principal.
func (a *application) setGrant(c workspace.SetGrant) error {
	if err := a.exec("DELETE FROM workspace_grants WHERE principal = $1", c.Principal); err != nil {
		return err
	}
	held, err := json.Marshal(append([]workspace.Capability{}, c.Capabilities...))
	if err != nil {
		return err
	}
	return a.exec("INSERT INTO workspace_grants (principal, capabilities) VALUES ($1, $2)", c.Principal, string(held))
}

// setMemory writes an item of memory.
func (a *application) setMemory(c workspace.SetMemory) error {
	found, err := a.find("item", "SELECT id FROM memory WHERE tier = $1 AND key = $2 AND name = $3", string(c.Tier), c.Key, c.Name)
	if !found {
		if err := a.addRevision(content{a.receipt.Entity, "", workspace.MemoryKind, c.Text}, currentRevision, ""); err != nil {
			return err
		}
		return a.insert("memory", "id, tier, key, name, text", string(a.receipt.Entity), string(c.Tier), c.Key, c.Name, c.Text)
	}
	if err != nil {
		return err
	}
	text := c.Text
	if c.Append {
		old, err := a.currentContent(a.receipt.Entity)
		if err != nil {
			return err
		}
		if old.stamp.Lifecycle != workspace.Retired {
			text = old.text + c.Text
			if err := (workspace.SetMemory{Tier: c.Tier, Key: c.Key, Name: c.Name, Text: text}).Check(); err != nil {
				return err
			}
			if err := a.joinLabelOf(old.stamp.Revision); err != nil {
				return err
			}
			a.stamp = a.write.Derived(old.stamp.Origin).Stamp(a.stamp.Revision) // the added text does not change that of the rest
		}
	}
	return a.settle(content{a.receipt.Entity, "", workspace.MemoryKind, text})
}

// summarise writes an item of memory from others, which become its sources.
func (a *application) summarise(c workspace.Summarise) error {
	origins := make([]workspace.Origin, len(c.From))
	for i, id := range c.From {
		var from workspace.MemoryPlace
		if err := a.scan(fmt.Sprintf("item of memory %.40q", id), "SELECT tier, key, origin FROM memory WHERE id = $1",
			[]any{string(id)}, &from.Tier, &from.Key, &origins[i]); err != nil {
			return err
		}
		if err := c.CheckSource(a.write.Actor(), from); err != nil {
			return err
		}
		old, err := a.currentContent(id)
		if err != nil {
			return err
		}
		if err := a.joinLabelOf(old.stamp.Revision); err != nil { // a summary is at most as trusted as what it summarises
			return err
		}
	}
	a.write = a.write.Derived(origins...)
	a.stamp = a.write.Stamp(a.stamp.Revision)
	if err := a.setMemory(c.SetMemory); err != nil || a.unchanged {
		return err
	}
	for _, id := range c.From {
		if err := a.addSource(id); err != nil {
			return err
		}
	}
	return nil
}

// scrub removes the texts of revisions, and of the contents that they are. The digests stay.
func (a *application) scrub(c workspace.ScrubText) error {
	a.scrubbed = true
	for _, revision := range c.Revisions {
		all, err := a.contentsOf(revision)
		if err != nil {
			return err
		}
		for _, r := range all {
			a.receipt.Entity, a.receipt.Page = r.entity, r.page
			if err := a.scrubContent(r); err != nil {
				return err
			}
		}
		for _, statement := range []string{
			"UPDATE revisions SET text = '', state = CASE state WHEN 'current' THEN state ELSE 'scrubbed' END WHERE revision = $1",
			"DELETE FROM outside_sources WHERE revision = $1",
		} {
			if err := a.exec(statement, string(revision)); err != nil {
				return err
			}
		}
		if err := a.resolve(revision, "scrubbed"); err != nil {
			return err
		}
	}
	return nil
}

// scrubContent removes a text from what the entity has beside its revisions.
func (a *application) scrubContent(r storedContent) error {
	if isFirst(r) { // the head and the slug were made with the page
		if err := a.exec("UPDATE pages SET head = '', file = '', slug = $1 WHERE id = $2", "page-"+strings.ToLower(string(r.entity)),
			string(r.entity)); err != nil {
			return err
		}
	}
	if r.kind == workspace.AttachmentKind {
		return a.scrubAttachment(r)
	}
	if r.kind == workspace.TagKind { // the tag is the text of all revisions
		if err := a.exec("UPDATE tags SET tag = id, text = '' WHERE id = $1", string(r.entity)); err != nil {
			return err
		}
	}
	if r.state != currentRevision {
		return nil
	}
	r.text = ""
	return a.put(r.content, r.stamp)
}

// scrubAttachment removes the name of an attachment, and its bytes if no other attachment has them.
func (a *application) scrubAttachment(r storedContent) error {
	if err := a.exec("UPDATE attachments SET name = '', digest = '', size = 0 WHERE id = $1", string(r.entity)); err != nil {
		return err
	}
	return a.exec("DELETE FROM files WHERE digest = $1 AND NOT EXISTS (SELECT 1 FROM attachments WHERE digest = $1)", r.text)
}

// MemoryItem returns an item of memory. The fault has the code NotFound if there is none.
func (w *Workspace) MemoryItem(ctx context.Context, id workspace.ID) (m workspace.MemoryItem, err error) {
	const step = "read memory"
	all, err := list(ctx, w, step, "SELECT id, tier, key, name, text, "+stampNames+" FROM memory WHERE id = $1", scanMemory, string(id))
	if err == nil && len(all) == 0 {
		err = w.db.newFault(step, drawbridge.NotFound, fmt.Errorf("the workspace has no item of memory %.40q", id))
	}
	if err != nil {
		return m, err
	}
	return all[0], nil
}

func scanMemory(rows *sql.Rows) (m workspace.MemoryItem, err error) {
	var s scannedStamp
	err = rows.Scan(append([]any{&m.ID, &m.Tier, &m.Key, &m.Name, &m.Text}, s.into()...)...)
	m.Stamp = s.stamp()
	return m, err
}

// Memory returns the items of a tier, by their names. Retired ones are left out.
func (w *Workspace) Memory(ctx context.Context, tier workspace.Tier, key string) ([]workspace.MemoryItem, error) {
	return list(ctx, w, "read memory", "SELECT id, tier, key, name, text, "+stampNames+` FROM memory
		WHERE tier = $1 AND key = $2 AND lifecycle <> 'retired' ORDER BY name`, scanMemory, string(tier), key)
}

// Attachments returns the files of a page, by their names.
func (w *Workspace) Attachments(ctx context.Context, page workspace.ID) ([]workspace.Attachment, error) {
	return list(ctx, w, "list attachments", "SELECT id, page, name, type, digest, size, "+stampNames+` FROM attachments
		WHERE page = $1 ORDER BY name, id`, func(rows *sql.Rows) (f workspace.Attachment, err error) {
		var s scannedStamp
		err = rows.Scan(append([]any{&f.ID, &f.Page, &f.Name, &f.Type, &f.Digest, &f.Size}, s.into()...)...)
		f.Stamp = s.stamp()
		return f, err
	}, string(page))
}

// AttachedBytes returns the bytes with a digest. The fault has the code NotFound if there are none.
func (w *Workspace) AttachedBytes(ctx context.Context, digest string) ([]byte, error) {
	const step = "read an attachment"
	var data []byte
	err := w.db.reader.QueryRowContext(ctx, "SELECT bytes FROM files WHERE digest = $1", digest).Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, w.db.newFault(step, drawbridge.NotFound, errors.New("the workspace has no such file"))
	}
	if err != nil {
		return nil, w.db.fault(step, err)
	}
	return data, nil
}

// Grants returns the capabilities of principals in the workspace.
func (w *Workspace) Grants(ctx context.Context) (map[string][]workspace.Capability, error) {
	const step = "read grants"
	type grant struct {
		principal string
		held      []workspace.Capability
	}
	rows, err := list(ctx, w, step, "SELECT principal, capabilities FROM workspace_grants ORDER BY principal", func(rows *sql.Rows) (g grant, err error) {
		var held string
		if err = rows.Scan(&g.principal, &held); err == nil {
			err = json.Unmarshal([]byte(held), &g.held)
		}
		return g, err
	})
	if err != nil {
		return nil, err
	}
	all := map[string][]workspace.Capability{}
	for _, g := range rows {
		all[g.principal] = g.held
	}
	return all, nil
}
