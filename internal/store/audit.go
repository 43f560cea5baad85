package store

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/recordlog"
	"github.com/drawbridge-mcp/drawbridge/ledger"
)

var _ audit.SlotRecorder = (*AuditWriter)(nil)

// AuditStream is the name of the first hash chain of audit records, and the prefix of the names of further ones, see
// appendAudit. The ledger has other streams.
const AuditStream = "audit"

const (
	// auditBatchDelay is the time for which records are collected before one transaction imports them.
	// auditBatchInterval is the minimum time between two imports. Few large imports are better than many small ones:
	// a transaction costs as much as a thousand records in it, and takes processor time from calls.
	auditBatchDelay, auditBatchInterval = 100 * time.Millisecond, 500 * time.Millisecond
	// outcomeDelay is the time for which a call without an outcome waits in the spool, so that a call that ends soon has one
	// record in the store.
	outcomeDelay = time.Second
	// Spool files of dead processes are imported for the first time recoverDelay after the start, because an earlier
	// import would slow the start. After that, they are imported every recoverInterval.
	recoverDelay, recoverInterval = time.Second, time.Minute
	// auditRetryPause is the delay before the next attempt after a failed import.
	auditRetryPause = time.Second
)

// AuditOptions are the options of an AuditWriter. The zero value is valid.
type AuditOptions struct {
	// Rules determine which parts of a call are recorded.
	Rules audit.RedactionRules
	// Sync makes Record wait until the record is on the disk. The record then survives a crash of the machine, not
	// only of the process.
	Sync bool
	// MaxWaiting is the maximum number of bytes in the spool directory that are not in the store yet, including the
	// files of other processes. 0 means 256 MiB. Above the maximum, Record returns an error, so calls are refused.
	MaxWaiting int64
	// Key returns the private key that signs checkpoints. It is called when a checkpoint is due. If Key is nil, no
	// checkpoints are signed.
	Key func(context.Context) (ed25519.PrivateKey, error)
	// KeepFor is the maximum age of records by the store's clock; 0 means no limit. KeepRecords is the maximum
	// number of records; 0 means no limit. No record is removed by age after the store's clock has jumped, or while
	// it differs from the process's clock by more than 5 minutes. KeepBytes is the maximum size of the blocks with
	// records; 0 means no limit.
	KeepFor     time.Duration
	KeepRecords uint64
	KeepBytes   int64
	// Adopted lists additional spool directories. The files of dead processes in these directories are imported like
	// those in the directory of this writer.
	Adopted []string
	// Now returns the current time of the process; nil means time.Now.
	Now func() time.Time
	// Logger receives errors that no method returns; nil discards them.
	Logger *slog.Logger
}

// An AuditWriter writes the audit records of this process to the store. A record is first written to a spool, which
// is a file that survives the process. A background import moves records in batches from the spool to the store's
// hash chain, each record exactly once.
type AuditWriter struct {
	db  *DB
	dir string
	o   AuditOptions

	frames sync.Pool
	// woken receives a value after each written record. It makes Run import the records in the spool.
	woken chan struct{}
	// spool is nil until the first record is written. mu guards the creation of the spool.
	spool  atomic.Pointer[recordlog.Log]
	mu     sync.Mutex
	closed bool

	// importing serializes imports. imported contains the number of imported bytes of each file. failing reports
	// whether the last import failed.
	importing sync.Mutex
	imported  map[string]int64
	failing   bool
	checkedAt time.Time // time of the last call of maintain
	// chain remembers the hash chain that this process writes. lastID is the highest ID of a call in the blocks with
	// records of this process. unpackable reports whether records of an earlier release cannot be packed into blocks.
	chain      chainWriter
	lastID     string
	unpackable bool
	// start is a random ID of this AuditWriter, which distinguishes the processes that found a jump of the clock.
	// judged reports whether this process has already compared the store's clock with the last pruning. warned is the
	// text of the last warning about clocks.
	start  string
	judged bool
	warned string
}

// NewAuditWriter returns the audit writer of this process. Its spool is in the directory dir. No file is created
// until the first record is written.
func (db *DB) NewAuditWriter(dir string, o AuditOptions) *AuditWriter {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &AuditWriter{
		db: db, dir: dir, o: o, woken: make(chan struct{}, 1), imported: map[string]int64{}, start: rand.Text(),
		frames: sync.Pool{New: func() any { return new([]byte) }},
	}
}

// Record writes a record to the spool. The record then survives the end of the process. If Record returns an error,
// which is a *drawbridge.Fault, the record was not written. The caller must then not perform the action that the
// record describes.
func (a *AuditWriter) Record(r audit.Record) error {
	s, err := a.openSpool()
	if err == nil {
		frame := a.frames.Get().(*[]byte)
		*frame = a.o.Rules.AppendRecord(append((*frame)[:0], make([]byte, recordlog.FrameHeader)...), &r)
		err = s.Append(*frame)
		a.frames.Put(frame)
	}
	if err != nil {
		return a.recordFault(err)
	}
	a.wakeRun()
	return nil
}

// RecordOpen implements [audit.SlotRecorder].
func (a *AuditWriter) RecordOpen(r audit.Record) (audit.Slot, error) {
	var slot recordlog.Slot
	s, err := a.openSpool()
	if err == nil {
		frame := a.frames.Get().(*[]byte)
		*frame = a.o.Rules.AppendRecord(append((*frame)[:0], make([]byte, recordlog.FrameHeader)...), &r)
		*frame = recordlog.AppendRoom(*frame)
		slot, err = s.AppendOpen(*frame)
		a.frames.Put(frame)
	}
	if err != nil {
		return audit.Slot{}, a.recordFault(err)
	}
	a.wakeRun()
	return audit.Slot(slot), nil
}

// Complete implements [audit.SlotRecorder]. A result that was rewritten has a record of its own.
func (a *AuditWriter) Complete(slot audit.Slot, r audit.Record) error {
	if s := a.spool.Load(); s != nil && r.Rewritten == "" && r.Reason == "" {
		tail := a.frames.Get().(*[]byte)
		*tail = a.o.Rules.AppendOutcome((*tail)[:0], &r)
		done, err := s.Complete(recordlog.Slot(slot), *tail)
		a.frames.Put(tail)
		if err != nil {
			return a.recordFault(err)
		}
		if done {
			return nil
		}
	}
	return a.Record(r)
}

// recordFault returns the fault for a record that could not be written.
func (a *AuditWriter) recordFault(err error) error {
	f := &drawbridge.Fault{
		Kind: drawbridge.Backend, Code: drawbridge.ServerError, Step: "record it in the audit at " + a.dir, Err: err,
		Next: "see that the directory can be written and the disk has room",
	}
	if errors.Is(err, recordlog.ErrFull) {
		f.Code, f.Next = drawbridge.Transient, "see that the store can be written"
	}
	return f
}

// openSpool returns the spool. It creates the spool at the first call.
func (a *AuditWriter) openSpool() (*recordlog.Log, error) {
	if s := a.spool.Load(); s != nil {
		return s, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.spool.Load(); s != nil {
		return s, nil
	}
	if a.closed {
		return nil, errors.New("the audit is closed")
	}
	s, err := recordlog.Open(a.dir, recordlog.Options{Sync: a.o.Sync, MaxWaiting: a.o.MaxWaiting})
	if err == nil {
		a.spool.Store(s)
	}
	return s, err
}

// Run imports the records of this process and of dead processes into the store until ctx is done. It also signs
// checkpoints and removes old records.
func (a *AuditWriter) Run(ctx context.Context) error {
	timer := time.NewTimer(recoverDelay)
	defer timer.Stop()
	var last time.Time // time of the last import
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			if err := a.RecoverOrphans(ctx); err != nil && ctx.Err() == nil {
				a.o.Logger.Warn("import the audit records of a process that ended unexpectedly", "err", err)
			}
			a.pack(ctx)
			a.maintain(ctx)
			timer.Reset(recoverInterval)
		case <-a.woken:
			sleepContext(ctx, max(auditBatchDelay, auditBatchInterval-time.Since(last)))
			more, err := a.drainBefore(ctx, time.Now().Add(-outcomeDelay))
			if last = time.Now(); err != nil && ctx.Err() == nil {
				a.logFailure(err)
				sleepContext(ctx, auditRetryPause)
				a.wakeRun()
				continue
			}
			a.failing = false
			if more {
				a.wakeRun()
			}
			if s := a.spool.Load(); s != nil {
				s.Prefault()
			}
			if time.Since(a.checkedAt) > maintainInterval {
				a.maintain(ctx)
			}
		}
	}
}

func (a *AuditWriter) wakeRun() {
	select {
	case a.woken <- struct{}{}:
	default:
	}
}

// sleepContext waits for the duration d, or until ctx is done.
func sleepContext(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// logFailure logs the error of a failed import, unless the previous import failed too.
func (a *AuditWriter) logFailure(err error) {
	if !a.failing {
		a.o.Logger.Error("the store does not take the audit in; calls go on until too much waits", "err", err)
	}
	a.failing = true
}

// Drain imports all records of this process's spool into the store. If another program damaged a spool file, Drain
// imports the records before the damage and writes an audit note.
func (a *AuditWriter) Drain(ctx context.Context) error {
	_, err := a.drainBefore(ctx, time.Time{})
	return err
}

// drainBefore is like Drain, but leaves records in the spool from the first call on that began after a time and has no
// outcome yet. more reports whether it did. The zero time leaves none.
func (a *AuditWriter) drainBefore(ctx context.Context, t time.Time) (more bool, err error) {
	s := a.spool.Load()
	if s == nil {
		return false, nil
	}
	a.importing.Lock()
	defer a.importing.Unlock()
	if err := a.db.checkFile("append to the audit"); err != nil {
		return false, err
	}
	files, more := s.PendingFilesBefore(t)
	for _, f := range files {
		err := a.importFile(ctx, f, &a.lastID, s.MarkStored)
		if d, ok := errors.AsType[*spoolDamage](err); ok {
			err = a.recordDamage(ctx, s, f, d)
		}
		if err != nil {
			return more, err
		}
		if s.Remove(f) {
			a.forgetFile(ctx, f)
		}
	}
	return more, nil
}

// A spoolDamage is the error for a spool file whose content is not what the process wrote.
type spoolDamage struct {
	name string
	at   int64
}

func (d *spoolDamage) Error() string {
	return fmt.Sprintf("the record at byte %d of %s is damaged", d.at, d.name)
}

// recordDamage is called if another program cut, edited or removed a spool file of this process. It writes an audit
// note with the number of lost bytes, and renames the file. Later records go to a new file. The caller must hold
// a.importing.
func (a *AuditWriter) recordDamage(ctx context.Context, s *recordlog.Log, f recordlog.File, d *spoolDamage) error {
	s.EndFile(false)
	for _, ended := range s.PendingFiles() {
		if ended.Name == f.Name {
			f = ended
		}
	}
	lost := f.Size - d.at
	reason := fmt.Sprintf(
		"another program cut, edited or removed %s: %d bytes of records are lost, and the rest of the file is kept as %s", f.Name, lost, f.Name+recordlog.TornSuffix)
	if err := a.recordNote(ctx, f.Name, reason, d.at, f.Size); err != nil {
		return err
	}
	a.o.Logger.Error("records of calls are lost: another program cut, edited or removed a file of the audit", "file",
		f.Path, "bytes", lost)
	s.MarkStored(lost)
	s.SetAside(f)
	a.forgetFile(ctx, f)
	return nil
}

// RecoverOrphans imports the spool files of dead processes. It writes an audit note for each file that ends with an
// incomplete record.
func (a *AuditWriter) RecoverOrphans(ctx context.Context) error {
	a.importing.Lock()
	defer a.importing.Unlock()
	var err error
	for _, dir := range append([]string{a.dir}, a.o.Adopted...) {
		err = errors.Join(err, a.recoverOrphansIn(ctx, dir))
	}
	if s := a.spool.Load(); s != nil {
		err = errors.Join(err, s.CountOthers())
	}
	if err != nil {
		return a.db.fault("take in the audit of "+a.dir, err)
	}
	return nil
}

// recoverOrphansIn imports the spool files of dead processes in one directory. The caller must hold a.importing.
func (a *AuditWriter) recoverOrphansIn(ctx context.Context, dir string) error {
	return recordlog.RecoverOrphans(dir, func(f recordlog.File, torn int64) error {
		var lastID string
		if err := a.importFile(ctx, f, &lastID, func(int64) {}); err != nil {
			return err
		}
		if torn > 0 {
			reason := fmt.Sprintf(
				// cmd audit verify searches stored notes for this text: package admin lists the earlier wordings
				"%s ended with %d bytes of an incomplete record: they were cut off, and the file is kept as %s",
				f.Name, torn, f.Name+recordlog.TornSuffix)
			if err := a.recordNote(ctx, f.Name, reason, f.Size, f.Size+torn); err != nil {
				return err
			}
		}
		return nil
	}, func(f recordlog.File) { a.forgetFile(ctx, f) })
}

// recordNote writes an audit note about the bytes from:to of a spool file, which contain no valid records. The import
// position of the file then moves to to.
func (a *AuditWriter) recordNote(ctx context.Context, name, reason string, from, to int64) error {
	r := audit.Record{ID: name, Kind: audit.Note, At: time.Now(), Bytes: int(to - from), Reason: reason}
	body := a.o.Rules.AppendRecord(nil, &r)
	err := a.db.importRecords(ctx, &a.chain, name, from, to, []ledger.Record{auditLedgerRecord(r.Kind, r.ID, body)},
		&a.lastID)
	if errors.Is(err, errAlreadyImported) { // another process has already written the note
		return nil
	}
	return err
}

// importFile imports the records of a file that are not in the store yet. It calls report with the number of bytes
// of each imported part. lastID is the argument after of appendAudit. The caller must hold a.importing.
func (a *AuditWriter) importFile(ctx context.Context, f recordlog.File, lastID *string, report func(n int64)) error {
	from, known := a.imported[f.Name]
	for {
		if !known {
			var err error
			if from, err = a.db.importedBytes(ctx, f.Name); err != nil {
				return err
			}
			known = true
		}
		if from >= f.Size {
			return nil
		}
		lines, next, err := f.Frames(from)
		if errors.Is(err, fs.ErrNotExist) || err == nil && next == from {
			return &spoolDamage{f.Name, from}
		}
		if err != nil {
			return err
		}
		records := make([]ledger.Record, 0, len(lines))
		for _, line := range lines {
			head, err := audit.Summarize(line)
			if err != nil {
				return fmt.Errorf("%s, between byte %d and %d: %w", f.Name, from, next, err)
			}
			records = append(records, auditLedgerRecord(head.Kind, head.ID, line))
		}
		if err := a.db.importRecords(ctx, &a.chain, f.Name, from, next, records, lastID); err != nil {
			delete(a.imported, f.Name) // read the position from the store next time
			return err
		}
		report(next - from)
		from, a.imported[f.Name] = next, next
	}
}

// forgetFile deletes the import position of a removed file.
func (a *AuditWriter) forgetFile(ctx context.Context, f recordlog.File) {
	delete(a.imported, f.Name)
	// If the deletion fails, the remaining row does no harm.
	_ = a.db.execWrite(ctx, "forget a spool", "DELETE FROM spools WHERE name = $1", f.Name)
}

// Close imports the records in the spool and closes the writer: later calls of Record fail. Records that cannot be
// imported now remain in the spool for the next process. Close must be called after Run has returned.
func (a *AuditWriter) Close(ctx context.Context) error {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	s := a.spool.Load()
	if s == nil {
		return nil
	}
	s.EndFile(true)
	err := a.Drain(ctx)
	if err == nil {
		a.maintain(ctx)
	}
	return errors.Join(err, s.Close())
}

// auditLedgerRecord returns the ledger record that stores an audit record.
func auditLedgerRecord(kind audit.RecordKind, id string, body []byte) ledger.Record {
	return ledger.Record{Stream: AuditStream, Kind: string(kind), Key: id, Body: body}
}
