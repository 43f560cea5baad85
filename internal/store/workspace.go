package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
	"github.com/oklog/ulid/v2"
)

// A Workspace is the database of a workspace. Its methods are safe for concurrent use. Errors are *drawbridge.Fault
// values, as those of a DB; a request that a workspace.Error refuses has that error as its cause.
type Workspace struct{ db *DB }

// OpenWorkspace opens the workspace at a location; see [Open] for its forms. It creates or migrates the tables.
func OpenWorkspace(ctx context.Context, location string, o Options) (*Workspace, error) {
	db, err := openTables(ctx, location, o, workspaceSchema)
	if err != nil {
		return nil, err
	}
	return &Workspace{db}, nil
}

// Close closes the workspace. It waits for operations in progress.
func (w *Workspace) Close() error { return w.db.Close() }

// A Receipt says what a write has done.
type Receipt struct {
	// Entity is what was written, and Page the page that it belongs to.
	Entity workspace.ID `json:"entity"`
	Page   workspace.ID `json:"page,omitempty"`
	// Revision identifies the write.
	Revision workspace.ID `json:"revision"`
	// Waiting reports that content of a person stays in place until one accepts the new content. Deviation is the record
	// of a disagreement with canonical content; empty without one.
	Waiting   bool         `json:"waiting,omitempty"`
	Deviation workspace.ID `json:"deviation,omitempty"`
	// Flagged is the number of entities derived from the changed content, which a person should look at again.
	Flagged int `json:"flagged,omitempty"`
}

// Apply carries out writes in one transaction: all of them, or none. It returns a receipt for each.
func (w *Workspace) Apply(ctx context.Context, writes ...workspace.Write) (receipts []Receipt, err error) {
	err = w.db.inTransaction(ctx, "write to the workspace", func(tx *sql.Tx) error {
		if lock := w.db.dialect.lock; lock != "" { // one writer at a time, as in a SQLite file
			if _, err := tx.ExecContext(ctx, lock); err != nil {
				return err
			}
		}
		receipts = receipts[:0]
		prepared := map[string]*sql.Stmt{} // the transaction closes them
		for i, write := range writes {
			a := &application{ctx: ctx, tx: tx, db: w.db, prepared: prepared, write: write}
			if err := a.carryOut(); err != nil {
				return w.refused(err, i, len(writes))
			}
			receipts = append(receipts, a.receipt)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return receipts, nil
}

// refused returns the fault for a write that the rules of the workspace refuse; other errors stay as they are.
func (w *Workspace) refused(err error, i, n int) error {
	refusal, ok := errors.AsType[*workspace.Error](err)
	if !ok {
		return err
	}
	code := map[workspace.Code]drawbridge.FaultCode{workspace.Invalid: drawbridge.InvalidInput, workspace.NotFound: drawbridge.NotFound,
		workspace.Forbidden: drawbridge.PolicyBlocked, workspace.Conflict: drawbridge.InvalidInput}[refusal.Code]
	f := &drawbridge.Fault{Kind: drawbridge.Backend, Code: code, Step: "write to the workspace", Err: err}
	if n > 1 {
		f.Step = fmt.Sprintf("write %d of %d to the workspace", i+1, n)
	}
	return f
}

// An application carries out one write in a transaction.
type application struct {
	ctx context.Context
	tx  *sql.Tx
	db  *DB
	// prepared has the statements of the transaction by their text: an import executes the same ones for each page.
	prepared map[string]*sql.Stmt
	write    workspace.Write
	stamp    workspace.Stamp
	receipt  Receipt
}

func (a *application) carryOut() error {
	if a.write.Change() == nil {
		return &workspace.Error{Code: workspace.Forbidden, Reason: "the write was not made by workspace.NewWrite"}
	}
	a.receipt.Revision = newID(a.write.At())
	a.stamp = a.write.Stamp(a.receipt.Revision)
	if err := a.change(); err != nil {
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

// newID returns an ID that sorts by time.
func newID(at time.Time) workspace.ID {
	return workspace.ID(ulid.MustNew(ulid.Timestamp(at), rand.Reader).String())
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
func (a *application) addRevision(entity, page workspace.ID, kind workspace.Kind, text, state string) error {
	return a.insert("revisions", "entity, kind, page, text, digest, state, accepted_by, accepted_at", string(entity),
		string(kind), string(page), text, workspace.Digest(text), state, "", 0)
}

// addSources records the derivation links and the outside sources of the write, for the entity of the receipt.
func (a *application) addSources() error {
	for _, source := range a.write.Sources() {
		if err := a.addSource(source); err != nil {
			return err
		}
	}
	for _, r := range a.write.References() {
		if err := a.exec(`INSERT INTO outside_sources (revision, kind, name, server) VALUES ($1, $2, $3, $4)
			ON CONFLICT (revision, kind, name, server) DO NOTHING`, string(a.receipt.Revision), r.Kind, r.Name, r.Server); err != nil {
			return err
		}
	}
	return nil
}

// addSource records a derivation link from the entity of the receipt.
func (a *application) addSource(source workspace.ID) error {
	derived := a.receipt.Entity
	if source == derived || derived == "" {
		return nil
	}
	var n int
	if err := a.scan("", "SELECT COUNT(*) FROM revisions WHERE entity = $1", []any{string(source)}, &n); err != nil {
		return err
	}
	if n == 0 {
		return notFound(fmt.Sprintf("source %.40q", source))
	}
	return a.exec(`INSERT INTO derivations (derived, source, revision) VALUES ($1, $2, $3)
		ON CONFLICT (derived, source) DO NOTHING`, string(derived), string(source), string(a.receipt.Revision))
}
