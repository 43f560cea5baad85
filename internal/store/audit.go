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

// AuditStream is the name of the stream of audit records. It is separate from the streams of the ledger.
const AuditStream = "audit"

const (
	// auditBatchDelay is the time for which records are collected before one transaction imports them.
	// auditBatchInterval is the shortest time between two imports. A transaction costs as much as a thousand records
	// in it, and competes with calls for the processors.
	auditBatchDelay, auditBatchInterval = 100 * time.Millisecond, 500 * time.Millisecond
	// recoverDelay is the time after the start before spool files of dead processes are imported, so that the start is
	// not slowed down.
	recoverDelay, recoverInterval = time.Second, time.Minute
	// auditRetryPause is the pause after a failed write to the store.
	auditRetryPause = time.Second
)

// AuditOptions are options of an audit. The zero value works.
type AuditOptions struct {
	// Rules select the parts of a call that may be recorded.
	Rules audit.RedactionRules
	// Sync makes each record wait until it is on the disk. It then survives a crash of the machine, not only of the
	// process.
	Sync bool
	// MaxWaiting is the largest number of bytes in the directory that wait for the store, including those of other
	// processes; 0 is 256 MiB. Above it, every call is refused.
	MaxWaiting int64
	// Key returns the key that signs checkpoints when one is due; nil signs none.
	Key func(context.Context) (ed25519.PrivateKey, error)
	// KeepFor is how long records are kept by the store's clock; 0 is for ever. KeepRecords is how many are kept; 0 is
	// all. No record is removed by age while the clocks of store and process differ by more than 5 minutes, or after
	// the store's clock has jumped.
	KeepFor     time.Duration
	KeepRecords uint64
	// Adopted are other directories whose files of dead processes are imported.
	Adopted []string
	// Now is the clock of the process; nil is time.Now.
	Now func() time.Time
	// Logger receives errors that are reported nowhere else; nil discards them.
	Logger *slog.Logger
}

// An AuditWriter writes the audit records of this process to the store. A record is first written to a spool, a file
// that survives the process. From there, records are imported in batches into the store's hash chain, each exactly
// once.
type AuditWriter struct {
	db  *DB
	dir string
	o   AuditOptions

	frames sync.Pool
	// woken signals that there are records to import.
	woken chan struct{}
	// spool is nil before the first record; mu guards its creation.
	spool  atomic.Pointer[recordlog.Log]
	mu     sync.Mutex
	closed bool

	// importing is held during an import. imported holds the number of imported bytes of each file; failing reports
	// that the last import failed.
	importing sync.Mutex
	imported  map[string]int64
	failing   bool
	checkedAt time.Time // time of the last test for a due checkpoint
	// start identifies this process to others. judged reports whether the store's clock was compared with the last
	// pruning. warned is the last warning about clocks.
	start  string
	judged bool
	warned string
}

// NewAuditWriter returns the audit writer of this process, with its spool in dir. It creates no file before the first
// record.
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

// Record writes a record. After it returns, the death of the process does not lose the record. The error is a
// *drawbridge.Fault: nothing was recorded, and the recorded action must not happen.
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
	select {
	case a.woken <- struct{}{}:
	default:
	}
	return nil
}

// recordFault returns the fault for a record that was not stored.
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

// openSpool returns the spool, and creates it at the first record.
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

// Run imports records into the store until ctx ends: those of this process, and those of processes that died.
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
				a.o.Logger.Warn("the audit of a process that died could not be taken in", "err", err)
			}
			a.maintain(ctx)
			timer.Reset(recoverInterval)
		case <-a.woken:
			sleepContext(ctx, max(auditBatchDelay, auditBatchInterval-time.Since(last)))
			err := a.Drain(ctx)
			if last = time.Now(); err != nil && ctx.Err() == nil {
				a.logFailure(err)
				sleepContext(ctx, auditRetryPause)
				a.wakeRun()
				continue
			}
			a.failing = false
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

// sleepContext returns after d or when ctx ends.
func sleepContext(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// logFailure logs once that the store accepts no records.
func (a *AuditWriter) logFailure(err error) {
	if !a.failing {
		a.o.Logger.Error("the store does not take the audit in; calls go on until too much waits", "err", err)
	}
	a.failing = true
}

// Drain imports all waiting records into the store.
func (a *AuditWriter) Drain(ctx context.Context) error {
	s := a.spool.Load()
	if s == nil {
		return nil
	}
	a.importing.Lock()
	defer a.importing.Unlock()
	if err := a.db.checkFile("append to the audit"); err != nil {
		return err
	}
	for _, f := range s.PendingFiles() {
		err := a.importFile(ctx, f, s.MarkStored)
		if d, ok := errors.AsType[*spoolDamage](err); ok {
			err = a.recordDamage(ctx, s, f, d)
		}
		if err != nil {
			return err
		}
		if s.Remove(f) {
			a.forgetFile(ctx, f)
		}
	}
	return nil
}

// A spoolDamage is the error for a spool file that does not hold what was written to it.
type spoolDamage struct {
	name string
	at   int64
}

func (d *spoolDamage) Error() string {
	return fmt.Sprintf("the record at byte %d of %s is damaged", d.at, d.name)
}

// recordDamage records that another program cut, edited or removed a spool file of this process, and how many bytes
// are lost. Later records go to another file. The caller must hold the lock work.
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

// RecoverOrphans imports the spool files of dead processes, and records torn ends.
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

// recoverOrphansIn imports the files of one directory. The caller holds importing.
func (a *AuditWriter) recoverOrphansIn(ctx context.Context, dir string) error {
	return recordlog.RecoverOrphans(dir, func(f recordlog.File, torn int64) error {
		if err := a.importFile(ctx, f, func(int64) {}); err != nil {
			return err
		}
		if torn > 0 {
			reason := fmt.Sprintf(
				// cmd audit verify looks for this text in stored notes: admin keeps earlier wordings
				"%s ended with %d bytes of an incomplete record: they were cut off, and the file is kept as %s",
				f.Name, torn, f.Name+recordlog.TornSuffix)
			if err := a.recordNote(ctx, f.Name, reason, f.Size, f.Size+torn); err != nil {
				return err
			}
		}
		return nil
	}, func(f recordlog.File) { a.forgetFile(ctx, f) })
}

// recordNote records a part of a file that is not a record.
func (a *AuditWriter) recordNote(ctx context.Context, name, reason string, from, to int64) error {
	r := audit.Record{ID: name, Kind: audit.Note, At: time.Now(), Bytes: int(to - from), Reason: reason}
	body := a.o.Rules.AppendRecord(nil, &r)
	err := a.db.importRecords(ctx, name, from, to, []ledger.Record{auditLedgerRecord(r.Kind, r.ID, body)})
	if errors.Is(err, errAlreadyImported) { // it is on record already
		return nil
	}
	return err
}

// importFile imports those records of a file that the store does not have yet. The caller holds importing.
func (a *AuditWriter) importFile(ctx context.Context, f recordlog.File, report func(n int64)) error {
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
			kind, id, err := audit.DecodeRecordHead(line)
			if err != nil {
				return fmt.Errorf("%s, between byte %d and %d: %w", f.Name, from, next, err)
			}
			records = append(records, auditLedgerRecord(kind, id, line))
		}
		if err := a.db.importRecords(ctx, f.Name, from, next, records); err != nil {
			delete(a.imported, f.Name) // the store decides which records it has
			return err
		}
		report(next - from)
		from, a.imported[f.Name] = next, next
	}
}

// forgetFile removes the import position of a deleted file.
func (a *AuditWriter) forgetFile(ctx context.Context, f recordlog.File) {
	delete(a.imported, f.Name)
	// A row that remains does no harm.
	_ = a.db.execWrite(ctx, "forget a spool", "DELETE FROM spools WHERE name = $1", f.Name)
}

// Close imports the waiting records and ends the audit: later records are refused. Records that the store does not
// accept now stay in the spool for the next process. Close is called after Run has returned.
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

// auditLedgerRecord returns the stored form of an audit record.
func auditLedgerRecord(kind audit.RecordKind, id string, body []byte) ledger.Record {
	return ledger.Record{Stream: AuditStream, Kind: string(kind), Key: id, Body: body}
}
