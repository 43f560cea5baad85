package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// createPage makes a page. The page has revisions of its title, and its blocks have revisions of their texts.
func (a *application) createPage(c workspace.CreatePage) error {
	id := a.newID()
	a.receipt.Entity, a.receipt.Page = id, id
	slug, err := a.freeSlug(c, id)
	if err != nil {
		return err
	}
	a.receipt.Slug = slug
	if c.Parent != "" {
		if err := a.wantPage(c.Parent); err != nil {
			return err
		}
	}
	var nr int64
	if err := a.scan("", "SELECT COALESCE(MAX(nr), 0) + 1 FROM pages", nil, &nr); err != nil {
		return err
	}
	if err := a.insert("pages", "nr, id, slug, title, parent, folder, head, deleted, file, created", nr, string(id), slug, c.Title,
		string(c.Parent), number(c.Folder), c.Head, 0, c.File, a.stamp.At.UnixMilli()); err != nil {
		return err
	}
	if err := a.addRevision(content{id, id, workspace.PageKind, c.Title}, currentRevision, ""); err != nil {
		return err
	}
	var text strings.Builder
	for i, b := range withSlots(c.Blocks) {
		text.WriteString(b.Text)
		if err := a.insertBlock(id, int64(i+1)*blockGap, b); err != nil {
			return err
		}
	}
	if c.Stated != "" {
		if err := a.exec("INSERT INTO stated_sources (revision, tree) VALUES ($1, $2)", string(a.stamp.Revision), c.Stated); err != nil {
			return err
		}
	}
	return a.indexText(nr, c.Title, text.String())
}

// withSlots returns the blocks with names for those that have none.
func withSlots(blocks []workspace.NewBlock) []workspace.NewBlock {
	blocks = slices.Clone(blocks)
	given := map[string]bool{}
	for _, b := range blocks {
		given[b.Slot] = true
	}
	n := 0
	for i := range blocks {
		for blocks[i].Slot == "" {
			n++
			if slot := fmt.Sprintf("b%d", n); !given[slot] {
				blocks[i].Slot = slot
			}
		}
	}
	return blocks
}

// The states of a revision: the content of its entity, earlier content, content that waits for a person, content that
// a person did not accept, and content whose text was removed. Queries name them as literals, so that the partial
// indexes are used.
const (
	currentRevision  = "current"
	pastRevision     = "past"
	waitingRevision  = "waiting"
	rejectedRevision = "rejected"
	scrubbedRevision = "scrubbed"
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
	if err := a.wantPage(c.Page); err != nil {
		return err
	}
	return a.settle(content{c.Page, c.Page, workspace.PageKind, c.Title})
}

// settle gives an entity that has content new content, as the rules of the workspace decide: it becomes the content, or
// waits for a person. A person who writes the text that is there accepts it; other such writes change nothing.
func (a *application) settle(c content) error {
	old, err := a.currentContent(c.entity)
	if err != nil {
		return err
	}
	if old.text == c.text {
		a.unchanged, a.receipt.Revision = true, old.stamp.Revision
		if a.stamp.Lifecycle != workspace.Canonical || old.stamp.Lifecycle == workspace.Canonical {
			return nil
		}
		return a.accept(old)
	}
	s := workspace.Settle(old.stamp, a.stamp)
	if s.Current {
		if err := a.replace(c.entity); err != nil {
			return err
		}
		if err := a.addRevision(c, currentRevision, old.stamp.Revision); err != nil {
			return err
		}
		if err := a.put(c, a.stamp); err != nil {
			return err
		}
		return a.flagDerived(c.entity, c.page)
	}
	a.receipt.Waiting = true
	if err := a.addRevision(c, waitingRevision, old.stamp.Revision); err != nil || !s.Deviates {
		return err
	}
	a.receipt.Deviation = a.newID()
	return a.exec(`INSERT INTO deviations (id, entity, revision, canonical, at, resolved, resolution)
		VALUES ($1, $2, $3, $4, $5, 0, '')`, string(a.receipt.Deviation), string(c.entity), string(a.stamp.Revision),
		string(old.stamp.Revision), a.stamp.At.UnixMilli())
}

// replace makes the current revision of an entity a past one.
func (a *application) replace(entity workspace.ID) error {
	return a.exec("UPDATE revisions SET state = 'past' WHERE entity = $1 AND state = 'current'", string(entity))
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
	a.changed[id] = true
	return a.flagPage(id)
}

func (a *application) setTag(c workspace.SetTag) error {
	a.receipt.Page = c.Page
	if err := a.wantPage(c.Page); err != nil {
		return err
	}
	text := c.Tag
	if c.Remove {
		text = ""
	}
	found, err := a.find(fmt.Sprintf("tag %.40q on this page", c.Tag), "SELECT id FROM tags WHERE page = $1 AND tag = $2",
		string(c.Page), c.Tag)
	switch {
	case err != nil && (found || c.Remove):
		return err
	case !found:
		if err := a.addRevision(content{a.receipt.Entity, c.Page, workspace.TagKind, text}, currentRevision, ""); err != nil {
			return err
		}
		return a.insert("tags", "id, page, tag, text", string(a.receipt.Entity), string(c.Page), c.Tag, text)
	}
	return a.settle(content{a.receipt.Entity, c.Page, workspace.TagKind, text})
}

// find reads the ID of the entity of the receipt, and reports whether there is one. Without one, the error is NotFound
// and the receipt has a new ID.
func (a *application) find(what, query string, args ...any) (bool, error) {
	err := a.scan(what, query, args, &a.receipt.Entity)
	if refusal, ok := errors.AsType[*workspace.Error](err); ok && refusal.Code == workspace.NotFound {
		a.receipt.Entity = a.newID()
		return false, err
	}
	return true, err
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
	var items string
	if len(c.Values) > 0 {
		encoded, err := json.Marshal(c.Values)
		if err != nil {
			return err
		}
		items = string(encoded)
	}
	found, err := a.find(fmt.Sprintf("property %.40q on this page", c.Name), "SELECT id FROM properties WHERE page = $1 AND name = $2",
		string(c.Page), c.Name)
	switch {
	case err != nil && (found || items == ""):
		return err
	case !found:
		if err := a.addRevision(content{a.receipt.Entity, c.Page, workspace.PropertyKind, items}, currentRevision, ""); err != nil {
			return err
		}
		return a.insert("properties", "id, page, name, items", string(a.receipt.Entity), string(c.Page), c.Name, items)
	}
	return a.settle(content{a.receipt.Entity, c.Page, workspace.PropertyKind, items})
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
	blocks, err := selectRows(a.ctx, a.tx, "SELECT text FROM blocks WHERE page = $1 AND lifecycle <> 'retired' ORDER BY pos", scanText, string(id))
	if err != nil {
		return err
	}
	return a.indexText(nr, title, strings.Join(blocks, ""))
}

// indexText puts a title and a text into the index of the search.
func (a *application) indexText(nr int64, title, text string) error {
	if a.db.dialect.isSQLite {
		return a.exec("INSERT INTO page_texts (rowid, title, body) VALUES ($1, $2, $3)", nr,
			strings.Join(workspace.Words(title), " "), strings.Join(workspace.Words(text), " "))
	}
	return a.exec("INSERT INTO page_texts (rowid, words) VALUES ($1, $2::tsvector)", nr, postgresWords(title, text))
}

// postgresWords returns the words of a title and a text in the form of a tsvector. The title has the weight A. A
// tsvector has at most 1 MiB and positions up to 16,383: the words after that are left out.
func postgresWords(title, text string) string {
	const most, lastPosition = 1 << 19, 16_383
	var b strings.Builder
	position := 0
	add := func(words []string, weight string) {
		for _, word := range words {
			if position == lastPosition || b.Len() > most {
				return
			}
			position++
			fmt.Fprintf(&b, "'%s':%d%s ", word, position, weight)
		}
	}
	add(workspace.Words(title), "A")
	add(workspace.Words(text), "")
	return b.String()
}
