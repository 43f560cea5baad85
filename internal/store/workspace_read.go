package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// A PageView is a page with what it has.
type PageView struct {
	workspace.Page
	Blocks     []workspace.Block `json:"blocks"`
	Tags       []string          `json:"tags,omitempty"`
	Properties []StoredProperty  `json:"properties,omitempty"`
	Flag       *StoredFlag       `json:"flag,omitempty"`
}

// Text returns the text of the page, byte for byte as it was imported if nothing was changed. Retired blocks are left
// out.
func (p PageView) Text() string {
	var b strings.Builder
	b.WriteString(p.Head)
	for _, block := range p.Blocks {
		if block.Lifecycle != workspace.Retired {
			b.WriteString(block.Text)
		}
	}
	return b.String()
}

// A StoredProperty is a property of a page.
type StoredProperty struct {
	ID     workspace.ID           `json:"id"`
	Name   string                 `json:"name"`
	Type   workspace.PropertyType `json:"type"`
	Values []string               `json:"values"`
	workspace.Stamp
}

// A StoredFlag says that an entity is derived from content that has changed since.
type StoredFlag struct {
	Entity workspace.ID `json:"entity"`
	Source workspace.ID `json:"source"`
	At     time.Time    `json:"at"`
	// Standing is the number of entities that are derived from the flagged one.
	Standing int `json:"standing"`
}

// A StoredRevision is content that an entity has, had, or may get.
type StoredRevision struct {
	Entity workspace.ID   `json:"entity"`
	Kind   workspace.Kind `json:"kind"`
	Page   workspace.ID   `json:"page,omitempty"`
	Text   string         `json:"text"`
	Digest string         `json:"digest"`
	// State is current, past, waiting or rejected.
	State      string    `json:"state"`
	AcceptedBy string    `json:"accepted_by,omitempty"`
	Accepted   time.Time `json:"accepted,omitzero"`
	workspace.Stamp
}

// A Deviation says that content disagrees with canonical content.
type Deviation struct {
	ID         workspace.ID `json:"id"`
	Entity     workspace.ID `json:"entity"`
	Revision   workspace.ID `json:"revision"`
	Canonical  workspace.ID `json:"canonical"`
	At         time.Time    `json:"at"`
	Resolved   time.Time    `json:"resolved,omitzero"`
	Resolution string       `json:"resolution,omitempty"`
}

const pageColumns = "id, slug, title, parent, folder, head, deleted, created, " + stampNames

func scanPage(row interface{ Scan(...any) error }) (p workspace.Page, err error) {
	var s scannedStamp
	var folder, deleted, created int64
	err = row.Scan(append([]any{&p.ID, &p.Slug, &p.Title, &p.Parent, &folder, &p.Head, &deleted, &created}, s.into()...)...)
	p.Folder, p.Deleted, p.Created, p.Stamp = folder != 0, deleted != 0, fromMillis(created), s.stamp()
	return p, err
}

// list reads the rows of a query.
func list[T any](ctx context.Context, w *Workspace, step, query string, scan func(rows *sql.Rows) (T, error), args ...any) ([]T, error) {
	rows, err := w.db.reader.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, w.db.fault(step, err)
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, w.db.fault(step, err)
		}
		all = append(all, v)
	}
	if err := rows.Err(); err != nil {
		return nil, w.db.fault(step, err)
	}
	return all, nil
}

// Page returns a page by its ID or its slug. The fault has the code NotFound if there is none.
func (w *Workspace) Page(ctx context.Context, name string) (PageView, error) {
	const step = "read a page"
	var v PageView
	var err error
	v.Page, err = scanPage(w.db.reader.QueryRowContext(ctx, "SELECT "+pageColumns+" FROM pages WHERE id = $1 OR slug = $1", name))
	if errors.Is(err, sql.ErrNoRows) {
		return v, w.db.newFault(step, drawbridge.NotFound, fmt.Errorf("the workspace has no page %.80q", name))
	}
	if err != nil {
		return v, w.db.fault(step, err)
	}
	id := string(v.ID)
	if v.Blocks, err = list(ctx, w, step, "SELECT id, page, slot, type, text, "+stampNames+` FROM blocks WHERE page = $1 ORDER BY pos`,
		func(rows *sql.Rows) (b workspace.Block, err error) {
			var s scannedStamp
			err = rows.Scan(append([]any{&b.ID, &b.Page, &b.Slot, &b.Type, &b.Text}, s.into()...)...)
			b.Stamp = s.stamp()
			return b, err
		}, id); err != nil {
		return v, err
	}
	if v.Tags, err = list(ctx, w, step, "SELECT tag FROM tags WHERE page = $1 ORDER BY tag", scanText, id); err != nil {
		return v, err
	}
	if v.Properties, err = list(ctx, w, step, "SELECT p.id, p.name, t.type, p.items, "+prefixed("p", stampNames)+` FROM properties AS p
		JOIN property_types AS t ON t.name = p.name WHERE p.page = $1 ORDER BY p.name`, scanProperty, id); err != nil {
		return v, err
	}
	flags, err := w.flags(ctx, "WHERE entity = $1", id)
	if len(flags) > 0 {
		v.Flag = &flags[0]
	}
	return v, err
}

// prefixed puts the name of a table before each name of a list of columns.
func prefixed(table, names string) string {
	return table + "." + strings.ReplaceAll(names, ", ", ", "+table+".")
}

func scanText(rows *sql.Rows) (s string, err error) {
	err = rows.Scan(&s)
	return s, err
}

func scanProperty(rows *sql.Rows) (p StoredProperty, err error) {
	var items string
	var s scannedStamp
	if err = rows.Scan(append([]any{&p.ID, &p.Name, &p.Type, &items}, s.into()...)...); err != nil {
		return p, err
	}
	p.Stamp = s.stamp()
	return p, json.Unmarshal([]byte(items), &p.Values)
}

// Children returns the pages below a page, or at the top for an empty ID, by their titles. Deleted ones are left out.
func (w *Workspace) Children(ctx context.Context, parent workspace.ID) ([]workspace.Page, error) {
	return list(ctx, w, "list pages", "SELECT "+pageColumns+" FROM pages WHERE parent = $1 AND deleted = 0 ORDER BY title, id",
		func(rows *sql.Rows) (workspace.Page, error) { return scanPage(rows) }, string(parent))
}

// Backlinks returns the pages with a link to the page with a slug.
func (w *Workspace) Backlinks(ctx context.Context, slug string) ([]workspace.Page, error) {
	return list(ctx, w, "list links to a page", "SELECT "+pageColumns+` FROM pages WHERE deleted = 0 AND id IN
		(SELECT page FROM links WHERE slug = $1) ORDER BY title, id`,
		func(rows *sql.Rows) (workspace.Page, error) { return scanPage(rows) }, slug)
}

const revisionColumns = "entity, kind, page, text, digest, state, accepted_by, accepted_at, " + stampNames

func scanRevision(rows *sql.Rows) (r StoredRevision, err error) {
	var s scannedStamp
	var accepted int64
	err = rows.Scan(append([]any{&r.Entity, &r.Kind, &r.Page, &r.Text, &r.Digest, &r.State, &r.AcceptedBy, &accepted}, s.into()...)...)
	r.Accepted, r.Stamp = fromMillis(accepted), s.stamp()
	return r, err
}

// History returns the revisions of an entity, or of a page and of all that it has, the newest first.
func (w *Workspace) History(ctx context.Context, entity workspace.ID) ([]StoredRevision, error) {
	return list(ctx, w, "read the history", "SELECT "+revisionColumns+` FROM revisions WHERE entity = $1 OR page = $1
		ORDER BY at DESC, revision DESC, entity`, scanRevision, string(entity))
}

// Candidates returns the contents that a person has not decided about, the oldest first: those that wait, and current
// ones that are candidates.
func (w *Workspace) Candidates(ctx context.Context) ([]StoredRevision, error) {
	return list(ctx, w, "list candidates", "SELECT "+revisionColumns+` FROM revisions WHERE state = $1 OR (state = $2 AND lifecycle = $3)
		ORDER BY at, revision, entity`, scanRevision, waitingRevision, currentRevision, string(workspace.Candidate))
}

// Deviations returns the deviations that no person has decided about, the oldest first.
func (w *Workspace) Deviations(ctx context.Context) ([]Deviation, error) {
	return list(ctx, w, "list deviations", `SELECT id, entity, revision, canonical, at, resolved, resolution FROM deviations
		WHERE resolved = 0 ORDER BY at, id`, func(rows *sql.Rows) (d Deviation, err error) {
		var at, resolved int64
		err = rows.Scan(&d.ID, &d.Entity, &d.Revision, &d.Canonical, &at, &resolved, &d.Resolution)
		d.At, d.Resolved = fromMillis(at), fromMillis(resolved)
		return d, err
	})
}

// Flags returns the entities that a person should look at again because their sources have changed. Those from which
// the most is derived come first.
func (w *Workspace) Flags(ctx context.Context) ([]StoredFlag, error) { return w.flags(ctx, "") }

func (w *Workspace) flags(ctx context.Context, where string, args ...any) ([]StoredFlag, error) {
	return list(ctx, w, "list flags", `SELECT entity, source, at, (SELECT COUNT(*) FROM derivations WHERE derivations.source = flags.entity)
		AS standing FROM flags `+where+" ORDER BY standing DESC, at, entity", func(rows *sql.Rows) (f StoredFlag, err error) {
		var at int64
		err = rows.Scan(&f.Entity, &f.Source, &at, &f.Standing)
		f.At = fromMillis(at)
		return f, err
	}, args...)
}

// Sources returns the entities from which an entity is derived, and Derived those that are derived from it.
func (w *Workspace) Sources(ctx context.Context, entity workspace.ID) ([]workspace.ID, error) {
	return w.linked(ctx, "SELECT source FROM derivations WHERE derived = $1 ORDER BY source", entity)
}

// Derived returns the entities that are derived from an entity.
func (w *Workspace) Derived(ctx context.Context, entity workspace.ID) ([]workspace.ID, error) {
	return w.linked(ctx, "SELECT derived FROM derivations WHERE source = $1 ORDER BY derived", entity)
}

func (w *Workspace) linked(ctx context.Context, query string, entity workspace.ID) ([]workspace.ID, error) {
	return list(ctx, w, "read derivations", query, func(rows *sql.Rows) (id workspace.ID, err error) {
		err = rows.Scan(&id)
		return id, err
	}, string(entity))
}

// OutsideSources returns the sources of a revision outside of the workspace.
func (w *Workspace) OutsideSources(ctx context.Context, revision workspace.ID) ([]workspace.Reference, error) {
	return list(ctx, w, "read sources", `SELECT kind, name, server FROM outside_sources WHERE revision = $1 ORDER BY kind, name, server`,
		func(rows *sql.Rows) (r workspace.Reference, err error) {
			err = rows.Scan(&r.Kind, &r.Name, &r.Server)
			return r, err
		}, string(revision))
}

// A Hit is a page that a search has found.
type Hit struct {
	workspace.Page
	// Score orders the hits: higher is better. Scores of two searches cannot be compared.
	Score float64 `json:"score"`
}

// Search returns the pages with all words of a query in their title or text, the best first. A word of a query also
// finds words that begin with it.
func (w *Workspace) Search(ctx context.Context, query string, limit int) ([]Hit, error) {
	const step = "search"
	words := strings.FieldsFunc(query, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if len(words) == 0 {
		return nil, w.db.newFault(step, drawbridge.InvalidInput, errors.New("the query has no word"))
	}
	statement, terms := searchPostgresQuery, strings.Join(words, ":* & ")+":*"
	if w.db.dialect.questionMarks {
		statement, terms = searchSQLiteQuery, `"`+strings.Join(words, `"* "`)+`"*`
	}
	return list(ctx, w, step, statement, func(rows *sql.Rows) (h Hit, err error) {
		var s scannedStamp
		var folder, deleted, created int64
		p := &h.Page
		err = rows.Scan(append([]any{&h.Score, &p.ID, &p.Slug, &p.Title, &p.Parent, &folder, &p.Head, &deleted, &created}, s.into()...)...)
		p.Folder, p.Deleted, p.Created, p.Stamp = folder != 0, deleted != 0, fromMillis(created), s.stamp()
		return h, err
	}, terms, limit)
}

var (
	searchSQLiteQuery = "SELECT found.score, " + prefixed("p", pageColumns) + ` FROM (
		SELECT rowid AS nr, -bm25(page_texts, 8.0, 1.0) AS score FROM page_texts WHERE page_texts MATCH $1
		ORDER BY bm25(page_texts, 8.0, 1.0) LIMIT $2) AS found
		JOIN pages AS p ON p.nr = found.nr ORDER BY found.score DESC, p.id`
	searchPostgresQuery = "SELECT found.score, " + prefixed("p", pageColumns) + ` FROM (
		SELECT rowid AS nr, ts_rank(words, to_tsquery('simple', $1)) AS score FROM page_texts
		WHERE words @@ to_tsquery('simple', $1) ORDER BY score DESC LIMIT $2) AS found
		JOIN pages AS p ON p.nr = found.nr ORDER BY found.score DESC, p.id`
)
