package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// Why returns who wrote an entity and from what it was made, as a tree. name is an ID, the slug of a page, or a page
// and the slot or the ID of one of its blocks, as in plan#b2. The content of a source is the one that it had when the
// content above it was written. The fault has the code NotFound if there is no such entity.
func (w *Workspace) Why(ctx context.Context, name string, o workspace.WhyOptions) (*workspace.Why, error) {
	const step = "find the sources"
	id, err := w.resolvePart(ctx, name, o)
	if err != nil {
		return nil, err
	}
	tx, err := w.db.reader.BeginTx(ctx, w.db.dialect.snapshot)
	if err != nil {
		return nil, w.db.fault(step, err)
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	b := whyBuilder{ctx: ctx, tx: tx, mayRead: o.MayRead, seen: map[string]bool{}}
	b.depth, b.width, b.left = o.Bounds()
	root, err := b.build(id)
	if err != nil {
		return nil, w.db.fault(step, err)
	}
	return root, nil
}

// resolvePart returns the ID for a name of Why.
func (w *Workspace) resolvePart(ctx context.Context, name string, o workspace.WhyOptions) (workspace.ID, error) {
	page, part, ok := strings.Cut(name, "#")
	id, err := w.Resolve(ctx, page)
	if err != nil {
		return "", w.revisionNamed(ctx, page, o, err)
	}
	if !ok {
		return id, nil
	}
	blocks, err := list(ctx, w, "find a block", "SELECT id, slot FROM blocks WHERE page = $1 ORDER BY pos",
		func(rows *sql.Rows) (b workspace.Block, err error) {
			err = rows.Scan(&b.ID, &b.Slot)
			return b, err
		}, string(id))
	if err != nil {
		return "", err
	}
	slots := make([]string, len(blocks))
	for i, b := range blocks {
		if slots[i] = b.Slot; b.Slot == part || string(b.ID) == part {
			return b.ID, nil
		}
	}
	if len(slots) > maxNamedSlots {
		slots = append(slots[:maxNamedSlots], "others")
	}
	f := w.db.newFault("find a block", drawbridge.NotFound, fmt.Errorf("the page %.80q has no block %.80q", page, part))
	f.Next = "it has " + cmp.Or(strings.Join(slots, ", "), "none")
	return "", f
}

// maxNamedSlots is how many blocks of a page an error names.
const maxNamedSlots = 20

// revisionNamed returns the error for a name that is not one of an entity. It is cause unless the name is the ID of a
// revision, which lists show too, and the reader may see what it is a revision of.
func (w *Workspace) revisionNamed(ctx context.Context, name string, o workspace.WhyOptions, cause error) error {
	all, err := w.linked(ctx,
		"SELECT entity FROM revisions WHERE revision = $1 ORDER BY kind = 'page' DESC LIMIT 1", name)
	if err != nil || len(all) == 0 {
		return cause
	}
	entity, err := w.Why(ctx, string(all[0]), workspace.WhyOptions{Depth: 1, Width: 1, MayRead: o.MayRead})
	if err != nil || entity.Kind == workspace.Withheld {
		return cause
	}
	f := w.db.newFault("find an entity", drawbridge.NotFound,
		fmt.Errorf("%.80q is a revision of %s", name, entity.Title()))
	f.Next = "drawbridge workspace why " + string(entity.ID)
	return f
}

// A whyBuilder builds a tree level by level, so that the sources of a node are listed where it is nearest to the root.
type whyBuilder struct {
	ctx     context.Context
	tx      *sql.Tx
	mayRead func(workspace.MemoryPlace) bool
	// depth, width and left are the bounds; left is what is left of the number of nodes.
	depth, width, left int
	// seen has the contents whose sources are listed.
	seen map[string]bool
}

// A whyNode is a node whose sources are to be found.
type whyNode struct {
	*workspace.Why
	// revision is the write of the content. until is the write that had read it; empty for the root. content identifies
	// the content of the node with its parts.
	revision, until workspace.ID
	content         string
}

func (b *whyBuilder) build(id workspace.ID) (*workspace.Why, error) {
	root, err := b.entity(id, "")
	if err != nil {
		return nil, err
	}
	level := []whyNode{root}
	for depth := 0; len(level) > 0; depth++ {
		var next []whyNode
		for _, node := range level {
			below, err := b.expand(node, depth == b.depth)
			if err != nil {
				return nil, err
			}
			next = append(next, below...)
		}
		level = next
	}
	return root.Why, nil
}

// expand adds the sources of a node, and returns those that may have sources. At the last level it counts them only.
func (b *whyBuilder) expand(node whyNode, last bool) (below []whyNode, err error) {
	if b.seen[node.content] {
		node.Shown = true
		return nil, nil
	}
	b.seen[node.content] = true
	all, err := b.sources(node)
	if err != nil {
		return nil, err
	}
	kept := min(len(all), b.width, b.left)
	if last {
		kept = 0
	}
	b.left -= kept
	node.LeftOut = len(all) - kept
	for _, source := range all[:kept] {
		node.Sources = append(node.Sources, source.Why)
		if source.ID != "" && source.Kind != workspace.Withheld {
			below = append(below, source)
		}
	}
	return below, nil
}

// sources returns the sources of a node: what belongs to a page and was written later, entities, and what is outside of
// the workspace.
func (b *whyBuilder) sources(node whyNode) (all []whyNode, err error) {
	if node.Kind == string(workspace.PageKind) {
		if all, err = b.parts(node); err != nil {
			return nil, err
		}
	}
	ids, err := selectRows(b.ctx, b.tx, `SELECT DISTINCT source FROM derivations WHERE revision = $1 AND source <> $2 ORDER BY source
		LIMIT 10000`, scanText, string(node.revision), string(node.ID))
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		source, err := b.entity(workspace.ID(id), node.revision)
		if err != nil {
			return nil, err
		}
		all = append(all, source)
	}
	references, err := selectRows(b.ctx, b.tx, "SELECT "+referenceColumns+" FROM outside_sources WHERE revision = $1 ORDER BY nr",
		scanReference, string(node.revision))
	if err != nil {
		return nil, err
	}
	for _, r := range references {
		kind := r.Kind
		if kind == "page" {
			kind = workspace.WebSource
		}
		all = append(all, whyNode{Why: &workspace.Why{Kind: kind, Name: r.Name, Server: r.Server, Digest: r.Digest, Call: r.Call}})
	}
	stated, err := b.stated(node.revision)
	if stated != nil {
		all = append(all, whyNode{Why: stated})
	}
	return all, err
}

// stated returns what an export said about an imported page; nil if it said nothing.
func (b *whyBuilder) stated(revision workspace.ID) (*workspace.Why, error) {
	var text string
	err := b.tx.QueryRowContext(b.ctx, "SELECT tree FROM stated_sources WHERE revision = $1", string(revision)).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	tree, err := workspace.ParseStated([]byte(text))
	if err != nil {
		return nil, err
	}
	return &workspace.Why{Kind: workspace.Statement, Name: "the imported export", Sources: []*workspace.Why{tree}}, nil
}

// parts returns the blocks, tags, properties and attachments that a page had at the time of a node, and that other
// writes made than that of the page. What one write made is one node.
func (b *whyBuilder) parts(page whyNode) (all []whyNode, err error) {
	type part struct{ entity, revision workspace.ID }
	parts, err := selectRows(b.ctx, b.tx, `SELECT entity, MAX(revision) FROM revisions WHERE page = $1 AND entity <> $1
		AND `+wasContent+` AND revision <= $2 GROUP BY entity ORDER BY entity`, func(rows *sql.Rows) (p part, err error) {
		err = rows.Scan(&p.entity, &p.revision)
		return p, err
	}, string(page.ID), orLast(page.until))
	if err != nil {
		return nil, err
	}
	of := map[workspace.ID]int{}
	for _, p := range parts {
		if p.revision == page.revision {
			continue
		}
		node, err := b.entity(p.entity, p.revision)
		if err != nil {
			return nil, err
		}
		if i, ok := of[p.revision]; ok {
			all[i].Name, all[i].Digest = all[i].Name+", "+node.Name, ""
			continue
		}
		of[p.revision] = len(all)
		all = append(all, node)
	}
	return all, nil
}

// wasContent is the condition of a revision that is or was the content of its entity.
const wasContent = "state IN ('current', 'past', 'scrubbed')"

// orLast returns a revision, or one that is greater than all for an empty one.
func orLast(revision workspace.ID) string { return cmp.Or(string(revision), "~") }

// entity returns the node for an entity with the content that a write had read; for an empty one, with its current
// content.
func (b *whyBuilder) entity(id, until workspace.ID) (node whyNode, err error) {
	query := "SELECT " + revisionColumns + " FROM revisions WHERE entity = $1 AND "
	all, err := selectRows(b.ctx, b.tx, query+wasContent+" AND revision <= $2 ORDER BY revision DESC LIMIT 1", scanRevision,
		string(id), orLast(until))
	if err == nil && len(all) == 0 { // it waits, or is newer than the write that names it as a source
		until = ""
		all, err = selectRows(b.ctx, b.tx, query+"revision <> $2 ORDER BY state = 'current' DESC, revision DESC LIMIT 1", scanRevision,
			string(id), "")
	}
	if err != nil {
		return node, err
	}
	if len(all) == 0 {
		return node, fmt.Errorf("%.40q has no revision", id)
	}
	r := all[0]
	node = whyNode{Why: &workspace.Why{Kind: string(r.Kind), ID: r.Entity, Digest: r.Digest, State: r.State}, revision: r.Revision,
		until: until, content: string(id) + " " + string(r.Revision)}
	if hidden, err := b.describe(node.Why, r); hidden || err != nil {
		return node, err
	}
	node.Written = &workspace.Written{Stamp: r.Stamp}
	if r.Kind == workspace.PageKind {
		if err := b.pageContent(&node); err != nil {
			return node, err
		}
	}
	var script int
	err = b.tx.QueryRowContext(b.ctx, "SELECT kind, script, COALESCE(tool, ''), COALESCE(call, '') FROM writes WHERE revision = $1",
		string(r.Revision)).Scan(&node.Written.Actor, &script, &node.Written.Tool, &node.Written.Call)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	node.Written.Script = script != 0
	return node, err
}

// pageContent sets the content of a page's node, and its digest: that of the text that the page had, with the blocks
// that no person has accepted.
func (b *whyBuilder) pageContent(page *whyNode) error {
	var last sql.NullString // it is NULL for a page that waits
	if err := b.tx.QueryRowContext(b.ctx, "SELECT MAX(revision) FROM revisions WHERE (entity = $1 OR page = $1) AND "+wasContent+
		" AND revision <= $2", string(page.ID), orLast(page.until)).Scan(&last); err != nil {
		return err
	}
	page.content += " " + last.String
	texts, err := selectRows(b.ctx, b.tx, `SELECT COALESCE((SELECT r.text FROM revisions AS r WHERE r.entity = b.id AND r.`+wasContent+`
		AND r.revision <= $2 ORDER BY r.revision DESC LIMIT 1), '') FROM blocks AS b
		WHERE b.page = $1 AND b.lifecycle <> 'retired' ORDER BY b.pos`, scanText, string(page.ID), orLast(page.until))
	if err != nil {
		return err
	}
	var head string
	err = b.tx.QueryRowContext(b.ctx, "SELECT head FROM pages WHERE id = $1", string(page.ID)).Scan(&head)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	page.Digest = workspace.Digest(head + strings.Join(texts, ""))
	return err
}

// describe sets the name and the page of an entity. hidden reports that the reader may not see it.
func (b *whyBuilder) describe(node *workspace.Why, r workspace.Revision) (hidden bool, err error) {
	one := func(query string, into ...any) {
		if err == nil {
			err = b.tx.QueryRowContext(b.ctx, query, string(r.Entity)).Scan(into...)
		}
	}
	switch r.Kind {
	case workspace.PageKind:
		node.Name = r.Text
		one("SELECT slug, deleted <> 0 FROM pages WHERE id = $1", &node.Page, &node.Deleted)
	case workspace.BlockKind:
		one("SELECT b.slot, p.slug FROM blocks AS b JOIN pages AS p ON p.id = b.page WHERE b.id = $1", &node.Name, &node.Page)
	case workspace.TagKind:
		one("SELECT t.tag, p.slug FROM tags AS t JOIN pages AS p ON p.id = t.page WHERE t.id = $1", &node.Name, &node.Page)
	case workspace.PropertyKind:
		one("SELECT t.name, p.slug FROM properties AS t JOIN pages AS p ON p.id = t.page WHERE t.id = $1", &node.Name, &node.Page)
	case workspace.AttachmentKind:
		one("SELECT t.name, t.digest, p.slug FROM attachments AS t JOIN pages AS p ON p.id = t.page WHERE t.id = $1", &node.Name,
			&node.Digest, &node.Page)
	case workspace.MemoryKind:
		var place workspace.MemoryPlace
		one("SELECT name, tier, key FROM memory WHERE id = $1", &node.Name, &place.Tier, &place.Key)
		node.Name = string(place.Tier) + "/" + node.Name
		if err == nil && b.mayRead != nil && !b.mayRead(place) {
			*node = workspace.Why{Kind: workspace.Withheld, ID: r.Entity}
			return true, nil
		}
	}
	if errors.Is(err, sql.ErrNoRows) { // what was removed keeps its revisions
		err = nil
	}
	return false, err
}

// callBatch is the number of calls that one query looks for.
const callBatch = 500

// CallReferences returns the sources that calls have read and from which something was written, by the IDs of the
// calls.
func (w *Workspace) CallReferences(ctx context.Context, calls []string) ([]workspace.Reference, error) {
	var all []workspace.Reference
	for part := range slices.Chunk(calls, callBatch) {
		marks, args := make([]string, len(part)), make([]any, len(part))
		for i, call := range part {
			marks[i], args[i] = fmt.Sprintf("$%d", i+1), call
		}
		found, err := list(ctx, w, "read the sources of calls", "SELECT DISTINCT "+referenceColumns+
			" FROM outside_sources WHERE call IN ("+strings.Join(marks, ", ")+")", scanReference, args...)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// CallWrites returns what a call wrote, by the ID of its audit record, in the order of the writes.
func (w *Workspace) CallWrites(ctx context.Context, call string) ([]workspace.CallWrite, error) {
	return list(ctx, w, "find the writes of a call", `SELECT w.revision, w.change, w.entity, COALESCE(p.slug, '') FROM writes AS w
		LEFT JOIN pages AS p ON p.id = w.page WHERE w.call = $1 ORDER BY w.revision LIMIT 1000`,
		func(rows *sql.Rows) (c workspace.CallWrite, err error) {
			err = rows.Scan(&c.Revision, &c.Change, &c.Entity, &c.Page)
			return c, err
		}, call)
}
