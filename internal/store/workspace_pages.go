package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// createPage makes a page. The page has revisions of its title, and its blocks have revisions of their texts.
func (a *application) createPage(c workspace.CreatePage) error {
	id := newID(a.stamp.At)
	a.receipt.Entity, a.receipt.Page = id, id
	slug, err := a.freeSlug(c, id)
	if err != nil {
		return err
	}
	if c.Parent != "" {
		if err := a.wantPage(c.Parent); err != nil {
			return err
		}
	}
	var nr int64
	if err := a.scan("", "SELECT COALESCE(MAX(nr), 0) + 1 FROM pages", nil, &nr); err != nil {
		return err
	}
	if err := a.insert("pages", "nr, id, slug, title, parent, folder, head, deleted, created", nr, string(id), slug, c.Title,
		string(c.Parent), number(c.Folder), c.Head, 0, a.stamp.At.UnixMilli()); err != nil {
		return err
	}
	if err := a.addRevision(id, id, workspace.PageKind, c.Title, currentRevision); err != nil {
		return err
	}
	for i, b := range c.Blocks {
		slot := b.Slot
		if slot == "" {
			slot = fmt.Sprintf("b%d", i+1)
		}
		if err := a.insertBlock(id, slot, int64(i+1)*blockGap, b); err != nil {
			return err
		}
	}
	return a.indexPage(id)
}

// The states of a revision: the content of its entity, earlier content, content that waits for a person, and content
// that a person did not accept.
const (
	currentRevision  = "current"
	pastRevision     = "past"
	waitingRevision  = "waiting"
	rejectedRevision = "rejected"
)

// blockGap is the distance of the positions of blocks, so that a block can be put between two others.
const blockGap = 1 << 20

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// numberedSlugs is how many pages with the same title get a number in their slug. Later ones get a part of their ID.
const numberedSlugs = 20

// freeSlug returns the slug of a new page. One that the caller gave must be free; one made from the title gets a suffix
// if it is not.
func (a *application) freeSlug(c workspace.CreatePage, id workspace.ID) (string, error) {
	slug := c.Slug
	if slug == "" {
		slug = workspace.SlugOf(c.Title)
	}
	for n := 1; ; n++ {
		try := slug
		if n > 1 {
			try = fmt.Sprintf("%s-%d", slug, n)
		}
		if n > numberedSlugs {
			try = slug + "-" + strings.ToLower(string(id))
		}
		var taken int
		if err := a.scan("", "SELECT COUNT(*) FROM pages WHERE slug = $1", []any{try}, &taken); err != nil || taken == 0 {
			return try, err
		}
		if c.Slug != "" {
			return "", &workspace.Error{Code: workspace.Conflict, Reason: fmt.Sprintf("there is a page with the slug %q", slug)}
		}
	}
}

// wantPage returns an error if a page does not exist or is deleted.
func (a *application) wantPage(id workspace.ID) error {
	var n int
	return a.scan(pageNamed(id), "SELECT 1 FROM pages WHERE id = $1 AND deleted = 0", []any{string(id)}, &n)
}

func pageNamed(id workspace.ID) string { return fmt.Sprintf("page %.40q", id) }

func (a *application) setTitle(c workspace.SetTitle) error {
	a.receipt.Entity, a.receipt.Page = c.Page, c.Page
	var title string
	var old scannedStamp
	if err := a.scan(pageNamed(c.Page), "SELECT title, "+stampNames+" FROM pages WHERE id = $1 AND deleted = 0",
		[]any{string(c.Page)}, append([]any{&title}, old.into()...)...); err != nil {
		return err
	}
	current, err := a.settle(c.Page, c.Page, workspace.PageKind, old.stamp(), title, c.Title)
	if err != nil || !current {
		return err
	}
	return a.put(content{c.Page, c.Page, workspace.PageKind, c.Title}, a.stamp)
}

// settle records new content of an entity, as the rules of the workspace decide. It returns whether the content becomes
// the current one.
func (a *application) settle(entity, page workspace.ID, kind workspace.Kind, old workspace.Stamp, before, text string) (bool, error) {
	s := workspace.Settle(old, a.stamp, before == text)
	state := waitingRevision
	if s.Current {
		state = currentRevision
		if err := a.exec("UPDATE revisions SET state = $1 WHERE entity = $2 AND state = $3", pastRevision, string(entity),
			currentRevision); err != nil {
			return false, err
		}
	}
	if err := a.addRevision(entity, page, kind, text, state); err != nil {
		return false, err
	}
	a.receipt.Waiting = !s.Current
	if s.Deviates {
		a.receipt.Deviation = newID(a.stamp.At)
		if err := a.exec(`INSERT INTO deviations (id, entity, revision, canonical, at, resolved, resolution)
			VALUES ($1, $2, $3, $4, $5, 0, '')`, string(a.receipt.Deviation), string(entity), string(a.receipt.Revision),
			string(old.Revision), a.stamp.At.UnixMilli()); err != nil {
			return false, err
		}
	}
	if !s.Current || before == text {
		return s.Current, nil
	}
	return true, a.flagDerived(entity, page)
}

func (a *application) movePage(c workspace.MovePage) error {
	a.receipt.Entity, a.receipt.Page = c.Page, c.Page
	for above := c.Parent; above != ""; {
		if above == c.Page {
			return &workspace.Error{Code: workspace.Invalid, Reason: "a page cannot be below itself"}
		}
		if err := a.scan(pageNamed(above), "SELECT parent FROM pages WHERE id = $1 AND deleted = 0", []any{string(above)},
			&above); err != nil {
			return err
		}
	}
	return a.execOne(pageNamed(c.Page), "UPDATE pages SET parent = $1 WHERE id = $2 AND deleted = 0", string(c.Parent),
		string(c.Page))
}

func (a *application) setDeleted(id workspace.ID, deleted bool) error {
	a.receipt.Entity, a.receipt.Page = id, id
	if err := a.execOne(pageNamed(id), "UPDATE pages SET deleted = $1 WHERE id = $2 AND deleted <> $1", number(deleted),
		string(id)); err != nil {
		return err
	}
	return a.indexPage(id)
}

func (a *application) setTag(c workspace.SetTag) error {
	a.receipt.Entity, a.receipt.Page = c.Page, c.Page
	if err := a.wantPage(c.Page); err != nil {
		return err
	}
	var old scannedStamp
	err := a.scan(fmt.Sprintf("tag %.40q on this page", c.Tag), "SELECT "+stampNames+" FROM tags WHERE page = $1 AND tag = $2",
		[]any{string(c.Page), c.Tag}, old.into()...)
	refusal, missing := errors.AsType[*workspace.Error](err)
	switch {
	case missing && !c.Remove && refusal.Code == workspace.NotFound:
		return a.insert("tags", "page, tag", string(c.Page), c.Tag)
	case err != nil || !c.Remove:
		return err // it is there already
	case !workspace.Settle(old.stamp(), a.stamp, false).Current:
		return &workspace.Error{Code: workspace.Forbidden, Reason: fmt.Sprintf("a person has set the tag %q", c.Tag)}
	}
	return a.exec("DELETE FROM tags WHERE page = $1 AND tag = $2", string(c.Page), c.Tag)
}

func (a *application) setProperty(c workspace.SetProperty) error {
	a.receipt.Page = c.Page
	if err := a.wantPage(c.Page); err != nil {
		return err
	}
	if err := a.exec("INSERT INTO property_types (name, type) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING", c.Name,
		string(c.Type)); err != nil {
		return err
	}
	var known string
	if err := a.scan("", "SELECT type FROM property_types WHERE name = $1", []any{c.Name}, &known); err != nil {
		return err
	}
	if known != string(c.Type) {
		return &workspace.Error{Code: workspace.Invalid, Reason: fmt.Sprintf("the property %q has the type %s", c.Name, known)}
	}
	values := c.Values
	if values == nil {
		values = []string{}
	}
	items, err := json.Marshal(values)
	if err != nil {
		return err
	}
	var id workspace.ID
	var before string
	var old scannedStamp
	err = a.scan("property", "SELECT id, items, "+stampNames+" FROM properties WHERE page = $1 AND name = $2",
		[]any{string(c.Page), c.Name}, append([]any{&id, &before}, old.into()...)...)
	if refusal, missing := errors.AsType[*workspace.Error](err); missing && refusal.Code == workspace.NotFound {
		a.receipt.Entity = newID(a.stamp.At)
		if err := a.addRevision(a.receipt.Entity, c.Page, workspace.PropertyKind, string(items), currentRevision); err != nil {
			return err
		}
		return a.insert("properties", "id, page, name, items", string(a.receipt.Entity), string(c.Page), c.Name, string(items))
	}
	if err != nil {
		return err
	}
	a.receipt.Entity = id
	current, err := a.settle(id, c.Page, workspace.PropertyKind, old.stamp(), before, string(items))
	if err != nil || !current {
		return err
	}
	return a.put(content{id, c.Page, workspace.PropertyKind, string(items)}, a.stamp)
}

// indexPage puts the title and the text of a page into the index of the search. A deleted page is taken out.
func (a *application) indexPage(id workspace.ID) error {
	var nr, deleted int64
	var title string
	if err := a.scan(pageNamed(id), "SELECT nr, title, deleted FROM pages WHERE id = $1", []any{string(id)}, &nr, &title,
		&deleted); err != nil {
		return err
	}
	if err := a.exec("DELETE FROM page_texts WHERE rowid = $1", nr); err != nil || deleted != 0 {
		return err
	}
	rows, err := a.tx.QueryContext(a.ctx, "SELECT text FROM blocks WHERE page = $1 AND lifecycle <> $2 ORDER BY pos", string(id),
		string(workspace.Retired))
	if err != nil {
		return err
	}
	defer rows.Close()
	var body strings.Builder
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return err
		}
		body.WriteString(text)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	rows.Close()
	if a.db.dialect.questionMarks {
		return a.exec("INSERT INTO page_texts (rowid, title, body) VALUES ($1, $2, $3)", nr, title, body.String())
	}
	return a.exec(`INSERT INTO page_texts (rowid, words) VALUES ($1,
		setweight(to_tsvector('simple', $2::text), 'A') || to_tsvector('simple', $3::text))`, nr, title, postgresText(body.String()))
}

// postgresText returns the part of a text that to_tsvector accepts.
func postgresText(text string) string {
	const most = 1 << 19 // a tsvector has at most 1 MiB
	if len(text) > most {
		text = text[:most]
	}
	return strings.ToValidUTF8(text, "")
}
