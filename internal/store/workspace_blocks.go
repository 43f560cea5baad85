package store

import (
	"fmt"

	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

func (a *application) insertBlock(page workspace.ID, pos int64, b workspace.NewBlock) error {
	id := a.newID()
	if a.receipt.Entity == "" {
		a.receipt.Entity = id
	}
	if err := a.insert("blocks", "id, page, slot, pos, type, text", string(id), string(page), b.Slot, pos, b.Type, b.Text); err != nil {
		return err
	}
	if err := a.addRevision(content{id, page, workspace.BlockKind, b.Text}, currentRevision, ""); err != nil {
		return err
	}
	return a.addLinks(id, page, b.Text)
}

// addLinks records the links in the text of a block.
func (a *application) addLinks(id, page workspace.ID, text string) error {
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
	if c.Block.Slot, err = a.freeSlot(c.Page, c.Block.Slot); err != nil {
		return err
	}
	if err := a.insertBlock(c.Page, pos, c.Block); err != nil {
		return err
	}
	a.changed[c.Page] = true
	return a.flagDerived(c.Page, c.Page)
}

// freeSlot returns the name of a new block of a page. One that the caller gave must be free.
func (a *application) freeSlot(page workspace.ID, slot string) (string, error) {
	var n int
	if err := a.scan("", "SELECT COUNT(*) FROM blocks WHERE page = $1", []any{string(page)}, &n); err != nil {
		return "", err
	}
	for {
		n++
		try := slot
		if slot == "" {
			try = fmt.Sprintf("b%d", n)
		}
		var taken int
		if err := a.scan("", "SELECT COUNT(*) FROM blocks WHERE page = $1 AND slot = $2", []any{string(page), try}, &taken); err != nil ||
			taken == 0 {
			return try, err
		}
		if slot != "" {
			return "", &workspace.Error{Code: workspace.Conflict, Reason: fmt.Sprintf("the page has a slot %q", slot)}
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
	ids, err := selectRows(a.ctx, a.tx, "SELECT id FROM blocks WHERE page = $1 ORDER BY pos", scanText, string(page))
	if err != nil {
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
	var read workspace.ID
	if err := a.scan(slotNamed(c.Slot), "SELECT id, revision FROM blocks WHERE page = $1 AND slot = $2",
		[]any{string(c.Page), c.Slot}, &a.receipt.Entity, &read); err != nil {
		return err
	}
	if c.Base != "" && c.Base != read {
		return &workspace.Error{Code: workspace.Conflict,
			Reason: fmt.Sprintf("the block %q has changed since it was read: its revision is %s", c.Slot, read)}
	}
	return a.settle(content{a.receipt.Entity, c.Page, workspace.BlockKind, c.Text})
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
	workspace.MemoryKind: {"memory", "text"}, workspace.AttachmentKind: {"attachments", "digest"}, workspace.TagKind: {"tags", "text"},
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
	if c.kind == workspace.BlockKind {
		if err := a.exec("DELETE FROM links WHERE block = $1", string(c.entity)); err != nil {
			return err
		}
		if err := a.addLinks(c.entity, c.page, c.text); err != nil {
			return err
		}
	}
	a.textChanged(c)
	return nil
}

// textChanged notes that the text of a page has changed, if the content belongs to it.
func (a *application) textChanged(c content) {
	if c.kind == workspace.BlockKind || c.kind == workspace.PageKind {
		a.changed[c.page] = true
	}
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
