package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge/internal/flow"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
	"github.com/drawbridge-mcp/drawbridge/ledger"
)

// A Workspace is the database of a workspace. Its methods are safe for concurrent use. Errors are *drawbridge.Fault
// values, as those of a DB; a request that a workspace.Error refuses has that error as its cause.
type Workspace struct {
	db *DB

	// mu guards keys.
	mu   sync.Mutex
	keys ledger.KeyGenerator
}

// OpenWorkspace opens the workspace at a location; see [Open] for its forms. It creates or migrates the tables.
func OpenWorkspace(ctx context.Context, location string, o Options) (*Workspace, error) {
	db, err := openTables(ctx, location, o, "workspace_version", workspaceSchema)
	if err != nil {
		return nil, err
	}
	if db.dialect.isSQLite { // what ScrubText removes must not stay in the file
		if _, err := db.writer.ExecContext(ctx, "PRAGMA secure_delete = ON"); err != nil {
			_ = db.Close() // the first error matters
			return nil, db.fault("open", err)
		}
	}
	return &Workspace{db: db}, nil
}

// Close closes the workspace. It waits for operations in progress.
func (w *Workspace) Close() error { return w.db.Close() }

// Apply carries out writes in one transaction: all of them, or none. It returns a receipt for each.
func (w *Workspace) Apply(ctx context.Context, writes ...workspace.Write) (receipts []workspace.Receipt, err error) {
	err = w.db.inTransaction(ctx, "write to the workspace", func(tx *sql.Tx) error {
		if lock := w.db.dialect.writeLock; lock != "" { // one writer at a time, as in a SQLite file
			if _, err := tx.ExecContext(ctx, lock); err != nil {
				return err
			}
		}
		receipts = receipts[:0]
		shared := &batch{prepared: map[string]*sql.Stmt{}, changed: map[workspace.ID]bool{}}
		for i, write := range writes {
			a := &application{ctx: ctx, tx: tx, w: w, db: w.db, batch: shared, write: write}
			if err := a.carryOut(); err != nil {
				return w.refused(err, i, len(writes))
			}
			receipts = append(receipts, a.receipt)
		}
		return w.indexChanged(ctx, tx, shared)
	})
	if err != nil {
		return nil, err
	}
	return receipts, w.afterScrub(ctx, writes)
}

// afterScrub removes the texts of a scrub from the log of a SQLite file, too.
func (w *Workspace) afterScrub(ctx context.Context, writes []workspace.Write) error {
	scrubs := slices.ContainsFunc(writes, func(write workspace.Write) bool {
		_, ok := write.Change().(workspace.ScrubText)
		return ok
	})
	if !scrubs {
		return nil
	}
	return w.db.emptyLog(ctx, "remove the scrubbed texts from the log")
}

// emptyLog writes the log of a SQLite file to the file, and empties it.
func (db *DB) emptyLog(ctx context.Context, step string) error {
	if !db.dialect.isSQLite {
		return nil
	}
	if _, err := db.writer.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return db.fault(step, err)
	}
	return nil
}

// refused returns the fault for a write that the rules of the workspace refuse; other errors stay as they are.
func (w *Workspace) refused(err error, i, n int) error {
	refusal, ok := errors.AsType[*workspace.Error](err)
	if !ok {
		return err
	}
	if n > 1 {
		return refusal.Fault(fmt.Sprintf("write %d of %d to the workspace", i+1, n))
	}
	return refusal.Fault("write to the workspace")
}

// A batch is what the writes of a transaction share.
type batch struct {
	// prepared has the statements of the transaction by their text: an import executes the same ones for each page. The
	// transaction closes them.
	prepared map[string]*sql.Stmt
	// changed has the pages whose text has changed: each is put into the index of the search once.
	changed map[workspace.ID]bool
	// scrubbed reports that a text was removed from everything.
	scrubbed bool
}

// indexChanged puts the changed pages into the index of the search.
func (w *Workspace) indexChanged(ctx context.Context, tx *sql.Tx, b *batch) error {
	a := &application{ctx: ctx, tx: tx, w: w, db: w.db, batch: b}
	for id := range b.changed {
		if err := a.indexPage(id); err != nil {
			return err
		}
	}
	if b.scrubbed && w.db.dialect.isSQLite { // the index keeps removed words until it is rewritten
		return a.exec("INSERT INTO page_texts (page_texts) VALUES ('optimize')")
	}
	return nil
}

// An application carries out one write in a transaction.
type application struct {
	*batch
	ctx     context.Context
	tx      *sql.Tx
	w       *Workspace
	db      *DB
	write   workspace.Write
	stamp   workspace.Stamp
	receipt workspace.Receipt
	// kept is the label of old content that stays in the entity; nil without any.
	kept *flow.Label
	// unchanged reports that the entity had this content already.
	unchanged bool
}

func (a *application) carryOut() error {
	if a.write.Change() == nil {
		return &workspace.Error{Code: workspace.Forbidden, Reason: "the write was not made by workspace.NewWrite"}
	}
	a.receipt.Revision = a.newID()
	a.stamp = a.write.Stamp(a.receipt.Revision)
	if err := a.change(); err != nil {
		return err
	}
	a.receipt.Origin, a.receipt.Lifecycle = a.stamp.Origin, a.stamp.Lifecycle
	if a.unchanged {
		return nil
	}
	actor := a.write.Actor()
	call, tool := a.write.Call()
	name := strings.TrimPrefix(fmt.Sprintf("%T", a.write.Change()), "workspace.")
	if err := a.exec(`INSERT INTO writes (revision, change, entity, page, kind, script, actor, thread, run, at, call, tool)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`, string(a.stamp.Revision), name, string(a.receipt.Entity),
		string(a.receipt.Page), actor.Kind.String(), number(actor.Script), actor.Principal, actor.Thread, actor.Run,
		a.stamp.At.UnixMilli(), orNull(call), orNull(tool)); err != nil {
		return err
	}
	if err := a.addLabel(); err != nil {
		return err
	}
	return a.addSources()
}

// change makes the change.
func (a *application) change() error {
	switch c := a.write.Change().(type) {
	case workspace.CreatePage:
		return a.createPage(c)
	case workspace.SetTitle:
		return a.setTitle(c)
	case workspace.MovePage:
		return a.movePage(c)
	case workspace.DeletePage:
		return a.setDeleted(c.Page, true)
	case workspace.RestorePage:
		return a.setDeleted(c.Page, false)
	case workspace.AddBlock:
		return a.addBlock(c)
	case workspace.SetBlock:
		return a.setBlock(c)
	case workspace.MoveBlock:
		return a.moveBlock(c)
	case workspace.SetTag:
		return a.setTag(c)
	case workspace.SetProperty:
		return a.setProperty(c)
	case workspace.Derive:
		return a.derive(c)
	case workspace.Promote:
		return a.promote(c)
	case workspace.Reject:
		return a.reject(c)
	case workspace.Retire:
		return a.retire(c)
	case workspace.Revalidate:
		return a.revalidate(c)
	case workspace.Attach:
		return a.attach(c)
	case workspace.SetGrant:
		return a.setGrant(c)
	case workspace.SetMemory:
		return a.setMemory(c)
	case workspace.Summarise:
		return a.summarise(c)
	case workspace.Forget:
		return a.forget(c)
	case workspace.ScrubText:
		return a.scrub(c)
	}
	return &workspace.Error{Code: workspace.Invalid, Reason: fmt.Sprintf("a workspace does not store %T", a.write.Change())}
}

// newID returns an ID that is greater than the IDs before.
func (a *application) newID() workspace.ID {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	return workspace.ID(a.w.keys.Next(a.write.At()))
}

// prepare returns a statement of the transaction.
func (a *application) prepare(text string) (*sql.Stmt, error) {
	if s, ok := a.prepared[text]; ok {
		return s, nil
	}
	s, err := a.tx.PrepareContext(a.ctx, text)
	if err == nil {
		a.prepared[text] = s
	}
	return s, err
}

func (a *application) exec(statement string, args ...any) error {
	s, err := a.prepare(statement)
	if err != nil {
		return err
	}
	_, err = s.ExecContext(a.ctx, args...)
	return err
}

// execOne executes a statement that has to change a row. The error is NotFound if it does not.
func (a *application) execOne(what string, statement string, args ...any) error {
	changed, err := a.db.execChanged(a.ctx, a.tx, statement, args...)
	if err == nil && !changed {
		return notFound(what)
	}
	return err
}

func notFound(what string) error {
	return &workspace.Error{Code: workspace.NotFound, Reason: "the workspace has no " + what}
}

// scan reads one row. The error is NotFound if there is none.
func (a *application) scan(what, query string, args []any, into ...any) error {
	s, err := a.prepare(query)
	if err != nil {
		return err
	}
	err = s.QueryRowContext(a.ctx, args...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return notFound(what)
	}
	return err
}

// stampNames are the columns of a stamp, in the order of stampValues and of a scannedStamp.
const stampNames = "revision, origin, lifecycle, actor, thread, run, at"

func stampValues(s workspace.Stamp) []any {
	return []any{string(s.Revision), string(s.Origin), string(s.Lifecycle), s.By, s.Thread, s.Run, s.At.UnixMilli()}
}

// A scannedStamp receives the columns of a stamp.
type scannedStamp struct {
	s  workspace.Stamp
	at int64
}

func (r *scannedStamp) into() []any {
	return []any{&r.s.Revision, &r.s.Origin, &r.s.Lifecycle, &r.s.By, &r.s.Thread, &r.s.Run, &r.at}
}

func (r *scannedStamp) stamp() workspace.Stamp {
	r.s.At = fromMillis(r.at)
	return r.s
}

// insert inserts a row with the columns names, followed by the stamp.
func (a *application) insert(table, names string, values ...any) error {
	values = append(values, stampValues(a.stamp)...)
	marks := make([]string, len(values))
	for i := range marks {
		marks[i] = fmt.Sprintf("$%d", i+1)
	}
	return a.exec("INSERT INTO "+table+" ("+names+", "+stampNames+") VALUES ("+strings.Join(marks, ", ")+")", values...)
}

// setStamp gives the row of a table with an id a stamp.
func (a *application) setStamp(table string, id workspace.ID, s workspace.Stamp) error {
	return a.exec("UPDATE "+table+` SET revision = $1, origin = $2, lifecycle = $3, actor = $4, thread = $5, run = $6, at = $7
		WHERE id = $8`, append(stampValues(s), string(id))...)
}

// addRevision records content of an entity.
func (a *application) addRevision(c content, state string, base workspace.ID) error {
	return a.insert("revisions", "entity, kind, page, text, digest, state, base, accepted_by, accepted_at", string(c.entity),
		string(c.kind), string(c.page), c.text, workspace.Digest(c.text), state, string(base), "", 0)
}

// addSources records the derivation links and the outside sources of the write, for the entity of the receipt.
func (a *application) addSources() error {
	for _, source := range a.write.Sources() {
		if err := a.addSource(source); err != nil {
			return err
		}
	}
	for i, r := range a.write.References() {
		if err := a.exec(`INSERT INTO outside_sources (revision, nr, kind, name, server, digest, call) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			string(a.receipt.Revision), i, r.Kind, r.Name, r.Server, orNull(r.Digest), orNull(r.Call)); err != nil {
			return err
		}
	}
	return nil
}

// orNull returns NULL for an empty text.
func orNull(text string) sql.NullString { return sql.NullString{String: text, Valid: text != ""} }

// addSource records that the content of the entity of the receipt was made from a source.
func (a *application) addSource(source workspace.ID) error {
	derived, revision := a.receipt.Entity, a.receipt.Revision
	if source == derived || source == a.receipt.Page { // what is on a page is not derived from the page
		return nil
	}
	if _, ok := a.write.Change().(workspace.Derive); ok { // of the content that the entity has
		if err := a.scan("entity", "SELECT revision FROM revisions WHERE entity = $1 AND state = 'current'",
			[]any{string(derived)}, &revision); err != nil {
			return err
		}
	}
	var known int
	if err := a.scan(fmt.Sprintf("source %.40q", source), "SELECT 1 FROM revisions WHERE entity = $1 LIMIT 1",
		[]any{string(source)}, &known); err != nil {
		return err
	}
	return a.exec(`INSERT INTO derivations (revision, derived, source) VALUES ($1, $2, $3)
		ON CONFLICT (revision, derived, source) DO NOTHING`, string(revision), string(derived), string(source))
}
