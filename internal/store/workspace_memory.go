package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// attach adds a file to a page. The bytes of equal files are stored once.
func (a *application) attach(c workspace.Attach) error {
	a.receipt.Entity, a.receipt.Page = newID(a.stamp.At), c.Page
	if err := a.wantPage(c.Page); err != nil {
		return err
	}
	sum := sha256.Sum256(c.Data)
	digest := hex.EncodeToString(sum[:])
	if err := a.exec("INSERT INTO files (digest, bytes) VALUES ($1, $2) ON CONFLICT (digest) DO NOTHING", digest, c.Data); err != nil {
		return err
	}
	if err := a.addRevision(a.receipt.Entity, c.Page, workspace.AttachmentKind, digest, currentRevision); err != nil {
		return err
	}
	return a.insert("attachments", "id, page, name, type, digest, size", string(a.receipt.Entity), string(c.Page), c.Name, c.Type,
		digest, len(c.Data))
}

// setGrant replaces the capabilities of a principal.
func (a *application) setGrant(c workspace.SetGrant) error {
	if err := a.exec("DELETE FROM grants WHERE principal = $1", c.Principal); err != nil || len(c.Capabilities) == 0 {
		return err
	}
	held, err := json.Marshal(c.Capabilities)
	if err != nil {
		return err
	}
	return a.exec("INSERT INTO grants (principal, capabilities) VALUES ($1, $2)", c.Principal, string(held))
}

// setMemory writes an item of memory.
func (a *application) setMemory(c workspace.SetMemory) error {
	var id workspace.ID
	var before string
	var old scannedStamp
	err := a.scan("item", "SELECT id, text, "+stampNames+" FROM memory WHERE tier = $1 AND key = $2 AND name = $3",
		[]any{string(c.Tier), c.Key, c.Name}, append([]any{&id, &before}, old.into()...)...)
	if refusal, ok := errors.AsType[*workspace.Error](err); ok && refusal.Code == workspace.NotFound {
		a.receipt.Entity = newID(a.stamp.At)
		if err := a.addRevision(a.receipt.Entity, "", workspace.MemoryKind, c.Text, currentRevision); err != nil {
			return err
		}
		return a.insert("memory", "id, tier, key, name, text", string(a.receipt.Entity), string(c.Tier), c.Key, c.Name, c.Text)
	}
	if err != nil {
		return err
	}
	text := c.Text
	if c.Append && old.s.Lifecycle != workspace.Retired {
		text = before + c.Text
		if err := (workspace.SetMemory{Tier: c.Tier, Key: c.Key, Name: c.Name, Text: text}).Check(); err != nil {
			return err
		}
		// What is added to a text does not make the rest of it more trusted.
		a.stamp = a.write.Derived(old.s.Origin).Stamp(a.receipt.Revision)
	}
	a.receipt.Entity = id
	current, err := a.settle(id, "", workspace.MemoryKind, old.stamp(), before, text)
	if err != nil || !current {
		return err
	}
	return a.put(content{id, "", workspace.MemoryKind, text}, a.stamp)
}

// summarise writes an item of memory from others, which become its sources.
func (a *application) summarise(c workspace.Summarise) error {
	origins := make([]workspace.Origin, len(c.From))
	for i, id := range c.From {
		if err := a.scan(fmt.Sprintf("item of memory %.40q", id), "SELECT origin FROM memory WHERE id = $1", []any{string(id)},
			&origins[i]); err != nil {
			return err
		}
	}
	a.write = a.write.Derived(origins...)
	a.stamp = a.write.Stamp(a.receipt.Revision)
	if err := a.setMemory(c.SetMemory); err != nil {
		return err
	}
	for _, id := range c.From {
		if err := a.addSource(id); err != nil {
			return err
		}
	}
	return nil
}

// forget retires an item of memory.
func (a *application) forget(c workspace.Forget) error {
	current, err := a.currentContent(c.Entity)
	if err != nil {
		return err
	}
	if current.kind != workspace.MemoryKind {
		return &workspace.Error{Code: workspace.Invalid, Reason: fmt.Sprintf("the entity %.40q is not an item of memory", c.Entity)}
	}
	a.receipt.Entity = c.Entity
	return a.retireContent(current)
}

// scrub removes the texts of revisions, and of the contents that they are. The digests stay.
func (a *application) scrub(c workspace.ScrubText) error {
	for _, revision := range c.Revisions {
		all, err := a.revisionsOf(revision)
		if err != nil {
			return err
		}
		for _, r := range all {
			a.receipt.Entity, a.receipt.Page = r.entity, r.page
			if r.state == currentRevision {
				if err := a.scrubContent(r); err != nil {
					return err
				}
			}
		}
		if err := a.exec("UPDATE revisions SET text = '' WHERE revision = $1", string(revision)); err != nil {
			return err
		}
		if err := a.exec("DELETE FROM outside_sources WHERE revision = $1", string(revision)); err != nil {
			return err
		}
	}
	return nil
}

func (a *application) scrubContent(r storedRevision) error {
	switch r.kind {
	case workspace.AttachmentKind:
		if err := a.exec("DELETE FROM files WHERE digest IN (SELECT digest FROM attachments WHERE id = $1)", string(r.entity)); err != nil {
			return err
		}
		return a.exec("DELETE FROM attachments WHERE id = $1", string(r.entity))
	case workspace.PropertyKind:
		r.text = "[]"
	case workspace.PageKind:
		r.text = "scrubbed"
	default:
		r.text = ""
	}
	return a.put(r.content, r.stamp)
}

// A MemoryItem is an item of memory.
type MemoryItem struct {
	ID   workspace.ID   `json:"id"`
	Tier workspace.Tier `json:"tier"`
	Key  string         `json:"key,omitempty"`
	Name string         `json:"name"`
	Text string         `json:"text"`
	workspace.Stamp
}

// Memory returns the items of a tier, by their names. Retired ones are left out.
func (w *Workspace) Memory(ctx context.Context, tier workspace.Tier, key string) ([]MemoryItem, error) {
	return list(ctx, w, "read memory", "SELECT id, tier, key, name, text, "+stampNames+` FROM memory
		WHERE tier = $1 AND key = $2 AND lifecycle <> $3 ORDER BY name`, func(rows *sql.Rows) (m MemoryItem, err error) {
		var s scannedStamp
		err = rows.Scan(append([]any{&m.ID, &m.Tier, &m.Key, &m.Name, &m.Text}, s.into()...)...)
		m.Stamp = s.stamp()
		return m, err
	}, string(tier), key, string(workspace.Retired))
}

// An Attachment is a file of a page.
type Attachment struct {
	ID   workspace.ID `json:"id"`
	Page workspace.ID `json:"page"`
	Name string       `json:"name"`
	Type string       `json:"type"`
	// Digest is the SHA-256 of the bytes, in hexadecimal digits.
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
	workspace.Stamp
}

// Attachments returns the files of a page, by their names.
func (w *Workspace) Attachments(ctx context.Context, page workspace.ID) ([]Attachment, error) {
	return list(ctx, w, "list attachments", "SELECT id, page, name, type, digest, size, "+stampNames+` FROM attachments
		WHERE page = $1 ORDER BY name, id`, func(rows *sql.Rows) (f Attachment, err error) {
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
	rows, err := list(ctx, w, step, "SELECT principal, capabilities FROM grants ORDER BY principal", func(rows *sql.Rows) (g grant, err error) {
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
