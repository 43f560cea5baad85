package store

import (
	"fmt"

	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

func (a *application) insertBlock(page workspace.ID, slot string, pos int64, b workspace.NewBlock) error {
	id := newID(a.stamp.At)
	if a.receipt.Entity == "" {
		a.receipt.Entity = id
	}
	if err := a.insert("blocks", "id, page, slot, pos, type, text", string(id), string(page), slot, pos, b.Type, b.Text); err != nil {
		return err
	}
	if err := a.addRevision(id, page, workspace.BlockKind, b.Text, currentRevision); err != nil {
		return err
	}
	return a.linkBlock(id, page, b.Text)
}

// linkBlock records the links in the text of a block.
func (a *application) linkBlock(id, page workspace.ID, text string) error {
	if err := a.exec("DELETE FROM links WHERE block = $1", string(id)); err != nil {
		return err
	}
	for _, link := range workspace.Links(text) {
		if err := a.exec("INSERT INTO links (block, page, slug) VALUES ($1, $2, $3)", string(id), string(page), link.Slug); err != nil {
			return err
		}
	}
	return nil
}

func (a *application) addBlock(c workspace.AddBlock) error {
	a.receipt.Page = c.Page
	if err := a.wantPage(c.Page); err != nil {
		return err
	}
	pos, err := a.placeAfter(c.Page, c.After)
	if err != nil {
		return err
	}
	slot := c.Block.Slot
	if slot == "" {
		if slot, err = a.freeSlot(c.Page); err != nil {
			return err
		}
	} else {
		var taken int
		if err := a.scan("", "SELECT COUNT(*) FROM blocks WHERE page = $1 AND slot = $2", []any{string(c.Page), slot}, &taken); err != nil {
			return err
		}
		if taken > 0 {
			return &workspace.Error{Code: workspace.Conflict, Reason: fmt.Sprintf("the page has a slot %q", slot)}
		}
	}
	if err := a.insertBlock(c.Page, slot, pos, c.Block); err != nil {
		return err
	}
	if err := a.flagDerived(c.Page, c.Page); err != nil {
		return err
	}
	return a.indexPage(c.Page)
}

func (a *application) freeSlot(page workspace.ID) (string, error) {
	var n int
	if err := a.scan("", "SELECT COUNT(*) FROM blocks WHERE page = $1", []any{string(page)}, &n); err != nil {
		return "", err
	}
	for {
		n++
		slot := fmt.Sprintf("b%d", n)
		var taken int
		if err := a.scan("", "SELECT COUNT(*) FROM blocks WHERE page = $1 AND slot = $2", []any{string(page), slot}, &taken); err != nil ||
			taken == 0 {
			return slot, err
		}
	}
}

// placeAfter returns a position after a block of a page; before all others if slot is empty. If there is no room, the
// blocks of the page get new positions.
func (a *application) placeAfter(page workspace.ID, slot string) (int64, error) {
	for range 2 {
		var from int64
		if slot != "" {
			if err := a.scan(slotNamed(slot), "SELECT pos FROM blocks WHERE page = $1 AND slot = $2", []any{string(page), slot},
				&from); err != nil {
				return 0, err
			}
		}
		var to int64
		if err := a.scan("", "SELECT COALESCE(MIN(pos), 0) FROM blocks WHERE page = $1 AND pos > $2", []any{string(page), from},
			&to); err != nil {
			return 0, err
		}
		if to == 0 {
			return from + blockGap, nil
		}
		if to-from > 1 {
			return from + (to-from)/2, nil
		}
		if err := a.renumber(page); err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("the page %s has too many blocks", page)
}

// renumber gives the blocks of a page positions with room between them.
func (a *application) renumber(page workspace.ID) error {
	rows, err := a.tx.QueryContext(a.ctx, "SELECT id FROM blocks WHERE page = $1 ORDER BY pos", string(page))
	if err != nil {
		return err
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return err
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for i, id := range ids {
		if err := a.exec("UPDATE blocks SET pos = $1 WHERE id = $2", int64(i+1)*blockGap, id); err != nil {
			return err
		}
	}
	return nil
}

func slotNamed(slot string) string { return fmt.Sprintf("block %.40q in this page", slot) }

func (a *application) setBlock(c workspace.SetBlock) error {
	a.receipt.Page = c.Page
	if err := a.wantPage(c.Page); err != nil {
		return err
	}
	var before string
	var old scannedStamp
	if err := a.scan(slotNamed(c.Slot), "SELECT id, text, "+stampNames+" FROM blocks WHERE page = $1 AND slot = $2",
		[]any{string(c.Page), c.Slot}, append([]any{&a.receipt.Entity, &before}, old.into()...)...); err != nil {
		return err
	}
	if c.Base != "" && c.Base != old.s.Revision {
		return &workspace.Error{Code: workspace.Conflict,
			Reason: fmt.Sprintf("the block %q has changed since it was read: its revision is %s", c.Slot, old.s.Revision)}
	}
	current, err := a.settle(a.receipt.Entity, c.Page, workspace.BlockKind, old.stamp(), before, c.Text)
	if err != nil || !current {
		return err
	}
	return a.put(content{a.receipt.Entity, c.Page, workspace.BlockKind, c.Text}, a.stamp)
}

// A content is what an entity has, or is to have.
type content struct {
	entity, page workspace.ID
	kind         workspace.Kind
	text         string
}

// contentColumns has the table and the column of the content of each kind of entity that can be written again.
var contentColumns = map[workspace.Kind][2]string{
	workspace.PageKind: {"pages", "title"}, workspace.BlockKind: {"blocks", "text"}, workspace.PropertyKind: {"properties", "items"},
	workspace.MemoryKind: {"memory", "text"}, workspace.AttachmentKind: {"attachments", "digest"},
}

// put makes a content that of its entity, with a stamp.
func (a *application) put(c content, s workspace.Stamp) error {
	place := contentColumns[c.kind]
	if err := a.exec("UPDATE "+place[0]+" SET "+place[1]+" = $1 WHERE id = $2", c.text, string(c.entity)); err != nil {
		return err
	}
	if err := a.setStamp(place[0], c.entity, s); err != nil {
		return err
	}
	switch c.kind {
	case workspace.PropertyKind, workspace.MemoryKind:
		return nil
	case workspace.BlockKind:
		if err := a.linkBlock(c.entity, c.page, c.text); err != nil {
			return err
		}
	}
	return a.indexPage(c.page)
}

func (a *application) moveBlock(c workspace.MoveBlock) error {
	a.receipt.Page = c.Page
	if err := a.wantPage(c.Page); err != nil {
		return err
	}
	if err := a.scan(slotNamed(c.Slot), "SELECT id FROM blocks WHERE page = $1 AND slot = $2", []any{string(c.Page), c.Slot},
		&a.receipt.Entity); err != nil {
		return err
	}
	pos, err := a.placeAfter(c.Page, c.After)
	if err != nil {
		return err
	}
	return a.exec("UPDATE blocks SET pos = $1 WHERE id = $2", pos, string(a.receipt.Entity))
}
