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

const pageColumns = "id, slug, title, parent, folder, head, deleted, file, created, " + stampNames

func scanPage(row interface{ Scan(...any) error }) (p workspace.Page, err error) {
	var s scannedStamp
	var folder, deleted, created int64
	err = row.Scan(append([]any{&p.ID, &p.Slug, &p.Title, &p.Parent, &folder, &p.Head, &deleted, &p.File, &created}, s.into()...)...)
	p.Folder, p.Deleted, p.Created, p.Stamp = folder != 0, deleted != 0, fromMillis(created), s.stamp()
	return p, err
}

// A querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// selectRows reads the rows of a query.
func selectRows[T any](ctx context.Context, from querier, query string, scan func(rows *sql.Rows) (T, error), args ...any) ([]T, error) {
	rows, err := from.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

// list reads the rows of a query outside of a transaction.
func list[T any](ctx context.Context, w *Workspace, step, query string, scan func(rows *sql.Rows) (T, error), args ...any) ([]T, error) {
	all, err := selectRows(ctx, w.db.reader, query, scan, args...)
	if err != nil {
		return nil, w.db.fault(step, err)
	}
	return all, nil
}

// windowArgs returns a window for LIMIT and OFFSET.
func windowArgs(w workspace.Window) []any {
	limit, offset := w.Bounds()
	return []any{limit, offset}
}

// Page returns a page by its ID or its slug. The fault has the code NotFound if there is none.
func (w *Workspace) Page(ctx context.Context, name string) (workspace.PageView, error) {
	const step = "read a page"
	tx, err := w.db.reader.BeginTx(ctx, w.db.dialect.snapshot)
	if err != nil {
		return workspace.PageView{}, w.db.fault(step, err)
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	v, err := readPageView(ctx, tx, name)
	if errors.Is(err, sql.ErrNoRows) {
		return v, w.db.newFault(step, drawbridge.NotFound, fmt.Errorf("the workspace has no page %.80q", name))
	}
	if err != nil {
		return v, w.db.fault(step, err)
	}
	return v, nil
}

func readPageView(ctx context.Context, tx *sql.Tx, name string) (v workspace.PageView, err error) {
	if v.Page, err = scanPage(tx.QueryRowContext(ctx, "SELECT "+pageColumns+" FROM pages WHERE id = $1 OR slug = $1", name)); err != nil {
		return v, err
	}
	id := string(v.ID)
	if v.Blocks, err = selectRows(ctx, tx, "SELECT id, page, slot, type, text, "+stampNames+` FROM blocks WHERE page = $1 ORDER BY pos`,
		scanBlock, id); err != nil {
		return v, err
	}
	if v.Tags, err = selectRows(ctx, tx, "SELECT id, tag, "+stampNames+" FROM tags WHERE page = $1 AND text <> '' ORDER BY tag",
		scanTag, id); err != nil {
		return v, err
	}
	if v.Properties, err = selectRows(ctx, tx, "SELECT p.id, p.name, t.type, p.items, "+prefixed("p", stampNames)+` FROM properties AS p
		JOIN property_types AS t ON t.name = p.name WHERE p.page = $1 AND p.items <> '' ORDER BY p.name`, scanProperty, id); err != nil {
		return v, err
	}
	if v.Flags, err = selectRows(ctx, tx, "SELECT "+flagColumns+` FROM flags WHERE entity = $1 OR page = $1
		ORDER BY at, entity LIMIT 1000`, scanFlag, id); err != nil {
		return v, err
	}
	return v, tx.QueryRowContext(ctx, `SELECT (SELECT COUNT(DISTINCT page) FROM links WHERE slug = $1 AND page <> $2), `+
		fmt.Sprintf(standingOf, "$2"), v.Slug, id).Scan(&v.Weight, &v.Standing)
}

func scanBlock(rows *sql.Rows) (b workspace.Block, err error) {
	var s scannedStamp
	err = rows.Scan(append([]any{&b.ID, &b.Page, &b.Slot, &b.Type, &b.Text}, s.into()...)...)
	b.Stamp = s.stamp()
	return b, err
}

func scanTag(rows *sql.Rows) (t workspace.TagView, err error) {
	var s scannedStamp
	err = rows.Scan(append([]any{&t.ID, &t.Tag}, s.into()...)...)
	t.Stamp = s.stamp()
	return t, err
}

// Resolve returns the ID of an entity: name is an ID, or the slug of a page. The fault has the code NotFound if there
// is none.
func (w *Workspace) Resolve(ctx context.Context, name string) (id workspace.ID, err error) {
	const step = "find an entity"
	err = w.db.reader.QueryRowContext(ctx, `SELECT entity FROM revisions WHERE entity = $1
		UNION ALL SELECT id FROM pages WHERE slug = $1 LIMIT 1`, name).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return "", w.db.newFault(step, drawbridge.NotFound, fmt.Errorf("the workspace has no %.80q", name))
	}
	if err != nil {
		return "", w.db.fault(step, err)
	}
	return id, nil
}

// ImportedPage returns the page below parent that was imported from a file; "" if there is none.
func (w *Workspace) ImportedPage(ctx context.Context, file string, parent workspace.ID) (workspace.ID, error) {
	all, err := w.linked(ctx, "SELECT id FROM pages WHERE file = $1 AND file <> '' AND parent = $2 AND deleted = 0 LIMIT 1",
		file, string(parent))
	if err != nil || len(all) == 0 {
		return "", err
	}
	return all[0], nil
}

// prefixed puts the name of a table before each name of a list of columns.
func prefixed(table, names string) string {
	return table + "." + strings.ReplaceAll(names, ", ", ", "+table+".")
}

func scanText(rows *sql.Rows) (s string, err error) {
	err = rows.Scan(&s)
	return s, err
}

func scanProperty(rows *sql.Rows) (p workspace.PropertyView, err error) {
	var items string
	var s scannedStamp
	if err = rows.Scan(append([]any{&p.ID, &p.Name, &p.Type, &items}, s.into()...)...); err != nil {
		return p, err
	}
	p.Stamp = s.stamp()
	return p, json.Unmarshal([]byte(items), &p.Values)
}

// Children returns the pages below a page, or at the top for an empty ID, by their titles. Deleted ones are left out.
func (w *Workspace) Children(ctx context.Context, parent workspace.ID, part workspace.Window) ([]workspace.Page, error) {
	return list(ctx, w, "list pages", "SELECT "+pageColumns+` FROM pages WHERE parent = $1 AND deleted = 0
		ORDER BY title, id LIMIT $2 OFFSET $3`, scanPageOf, append([]any{string(parent)}, windowArgs(part)...)...)
}

// Backlinks returns the pages with a link to the page with a slug, by their titles.
func (w *Workspace) Backlinks(ctx context.Context, slug string, part workspace.Window) ([]workspace.Page, error) {
	return list(ctx, w, "list links to a page", "SELECT "+pageColumns+` FROM pages WHERE deleted = 0 AND id IN
		(SELECT page FROM links WHERE slug = $1) ORDER BY title, id LIMIT $2 OFFSET $3`, scanPageOf,
		append([]any{slug}, windowArgs(part)...)...)
}

func scanPageOf(rows *sql.Rows) (workspace.Page, error) { return scanPage(rows) }

const revisionColumns = "entity, kind, page, text, digest, state, base, accepted_by, accepted_at, " + stampNames

func scanRevision(rows *sql.Rows) (r workspace.Revision, err error) {
	var s scannedStamp
	var accepted int64
	err = rows.Scan(append([]any{&r.Entity, &r.Kind, &r.Page, &r.Text, &r.Digest, &r.State, &r.Base, &r.AcceptedBy, &accepted},
		s.into()...)...)
	r.Accepted, r.Stamp = fromMillis(accepted), s.stamp()
	return r, err
}

// History returns the revisions of an entity, or of a page and of all that it has, the newest first.
func (w *Workspace) History(ctx context.Context, entity workspace.ID, part workspace.Window) ([]workspace.Revision, error) {
	const step = "read the history"
	if entity == "" {
		return nil, w.db.newFault(step, drawbridge.InvalidInput, errors.New("the entity is missing"))
	}
	return list(ctx, w, step, "SELECT "+revisionColumns+" FROM revisions WHERE entity = $1 UNION SELECT "+revisionColumns+
		" FROM revisions WHERE page = $1 ORDER BY at DESC, revision DESC, entity LIMIT $2 OFFSET $3", scanRevision,
		append([]any{string(entity)}, windowArgs(part)...)...)
}

// Revision returns the contents of a write, by their entities. There are several if the write made a page.
func (w *Workspace) Revision(ctx context.Context, revision workspace.ID) ([]workspace.Revision, error) {
	return list(ctx, w, "read a revision", "SELECT "+revisionColumns+" FROM revisions WHERE revision = $1 ORDER BY entity",
		scanRevision, string(revision))
}

// Candidates returns the contents that a person has not decided about, the oldest first: those that wait, and current
// ones that are candidates.
func (w *Workspace) Candidates(ctx context.Context, part workspace.Window) ([]workspace.Revision, error) {
	return list(ctx, w, "list candidates", "SELECT "+revisionColumns+` FROM revisions
		WHERE state = 'waiting' OR (state = 'current' AND lifecycle = 'candidate')
		ORDER BY at, revision, entity LIMIT $1 OFFSET $2`, scanRevision, windowArgs(part)...)
}

// Deviations returns the deviations that no person has decided about, the oldest first.
func (w *Workspace) Deviations(ctx context.Context, part workspace.Window) ([]workspace.Deviation, error) {
	return list(ctx, w, "list deviations", `SELECT id, entity, revision, canonical, at, resolved, resolution FROM deviations
		WHERE resolved = 0 ORDER BY at, id LIMIT $1 OFFSET $2`, func(rows *sql.Rows) (d workspace.Deviation, err error) {
		var at, resolved int64
		err = rows.Scan(&d.ID, &d.Entity, &d.Revision, &d.Canonical, &at, &resolved, &d.Resolution)
		d.At, d.Resolved = fromMillis(at), fromMillis(resolved)
		return d, err
	}, windowArgs(part)...)
}

// standingOf counts the entities whose current contents are derived from an entity, directly.
const standingOf = `(SELECT COUNT(DISTINCT d.derived) FROM derivations AS d
		JOIN revisions AS r ON r.entity = d.derived AND r.revision = d.revision AND r.state = 'current' WHERE d.source = %s)`

var flagColumns = "flags.entity, flags.page, flags.source, flags.at, " + fmt.Sprintf(standingOf, "flags.entity") + " AS standing"

func scanFlag(rows *sql.Rows) (f workspace.Flag, err error) {
	var at int64
	err = rows.Scan(&f.Entity, &f.Page, &f.Source, &at, &f.Standing)
	f.At = fromMillis(at)
	return f, err
}

// Flags returns the entities that a person should look at again because their sources have changed. Those from which
// the most is derived come first.
func (w *Workspace) Flags(ctx context.Context, part workspace.Window) ([]workspace.Flag, error) {
	return list(ctx, w, "list flags", "SELECT "+flagColumns+" FROM flags ORDER BY standing DESC, at, entity LIMIT $1 OFFSET $2", scanFlag,
		windowArgs(part)...)
}

// Sources returns the entities from which the current content of an entity is derived.
func (w *Workspace) Sources(ctx context.Context, entity workspace.ID) ([]workspace.ID, error) {
	return w.linked(ctx, `SELECT DISTINCT d.source FROM derivations AS d JOIN revisions AS r
		ON r.entity = d.derived AND r.revision = d.revision AND r.state = 'current' WHERE d.derived = $1 ORDER BY d.source LIMIT 10000`, string(entity))
}

// RevisionSources returns the entities from which the contents of a revision were made, also if they wait.
func (w *Workspace) RevisionSources(ctx context.Context, revision workspace.ID) ([]workspace.ID, error) {
	return w.linked(ctx, "SELECT DISTINCT source FROM derivations WHERE revision = $1 ORDER BY source LIMIT 10000", string(revision))
}

// Derived returns the entities whose current contents are derived from an entity.
func (w *Workspace) Derived(ctx context.Context, entity workspace.ID) ([]workspace.ID, error) {
	return w.linked(ctx, `SELECT DISTINCT d.derived FROM derivations AS d JOIN revisions AS r
		ON r.entity = d.derived AND r.revision = d.revision AND r.state = 'current' WHERE d.source = $1 ORDER BY d.derived LIMIT 10000`, string(entity))
}

func (w *Workspace) linked(ctx context.Context, query string, args ...any) ([]workspace.ID, error) {
	return list(ctx, w, "find entities", query, func(rows *sql.Rows) (id workspace.ID, err error) {
		err = rows.Scan(&id)
		return id, err
	}, args...)
}

const referenceColumns = "kind, name, server, COALESCE(digest, ''), COALESCE(call, '')"

func scanReference(rows *sql.Rows) (r workspace.Reference, err error) {
	err = rows.Scan(&r.Kind, &r.Name, &r.Server, &r.Digest, &r.Call)
	return r, err
}

// OutsideSources returns the sources of a revision outside of the workspace.
func (w *Workspace) OutsideSources(ctx context.Context, revision workspace.ID) ([]workspace.Reference, error) {
	return list(ctx, w, "read sources", "SELECT "+referenceColumns+" FROM outside_sources WHERE revision = $1 ORDER BY nr",
		scanReference, string(revision))
}

// maxQueryWords is the number of words of a query that a search uses.
const maxQueryWords = 32

// Search returns the pages with all words of a query in their title or text, the best first. The last word of a query
// also finds words that begin with it.
func (w *Workspace) Search(ctx context.Context, query string, part workspace.Window) ([]workspace.Hit, error) {
	const step = "search"
	words := workspace.Words(query)
	if len(words) == 0 {
		return nil, w.db.newFault(step, drawbridge.InvalidInput, errors.New("the query has no word"))
	}
	words = words[:min(len(words), maxQueryWords)]
	statement, terms := searchPostgresQuery, "'"+strings.Join(words, "' & '")+"':*"
	if w.db.dialect.isSQLite {
		statement, terms = searchSQLiteQuery, `"`+strings.Join(words, `" "`)+`"*`
	}
	return list(ctx, w, step, statement, func(rows *sql.Rows) (h workspace.Hit, err error) {
		h.Page, err = scanPage(scoredRow{rows, &h.Score})
		return h, err
	}, append([]any{terms}, windowArgs(part)...)...)
}

// A scoredRow is a row with a score before its other columns.
type scoredRow struct {
	rows  *sql.Rows
	score *float64
}

// Scan reads the score and the other columns.
func (r scoredRow) Scan(into ...any) error { return r.rows.Scan(append([]any{r.score}, into...)...) }

var (
	searchSQLiteQuery = "SELECT found.score, " + prefixed("p", pageColumns) + ` FROM (
		SELECT rowid AS nr, -bm25(page_texts, 8.0, 1.0) AS score FROM page_texts WHERE page_texts MATCH $1
		ORDER BY bm25(page_texts, 8.0, 1.0) LIMIT $2 OFFSET $3) AS found
		JOIN pages AS p ON p.nr = found.nr ORDER BY found.score DESC, p.id`
	searchPostgresQuery = "SELECT found.score, " + prefixed("p", pageColumns) + ` FROM (
		SELECT rowid AS nr, ts_rank(words, $1::tsquery) AS score FROM page_texts
		WHERE words @@ $1::tsquery ORDER BY score DESC, rowid LIMIT $2 OFFSET $3) AS found
		JOIN pages AS p ON p.nr = found.nr ORDER BY found.score DESC, p.id`
)
