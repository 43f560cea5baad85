package store

import (
	"log/slog"
	"sync"

	"github.com/drawbridge-mcp/drawbridge/internal/audit"
)

// A SpoolRecorder writes audit records in a process that has no open store. It writes them to a spool: files in a
// directory. A later process with an open store imports the records into the audit.
type SpoolRecorder struct{ a *AuditWriter }

// NewSpoolRecorder returns a recorder with its spool in the directory dir. No file is created until the first record
// is written. If always is set, each call of Record waits until the record is on the disk.
func NewSpoolRecorder(dir string, rules audit.RedactionRules, always bool) *SpoolRecorder {
	return &SpoolRecorder{&AuditWriter{
		dir: dir, o: AuditOptions{Rules: rules, Sync: always, Logger: slog.New(slog.DiscardHandler)},
		woken:  make(chan struct{}, 1),
		frames: sync.Pool{New: func() any { return new([]byte) }},
	}}
}

// Record writes a record to the spool, like AuditWriter.Record.
func (j *SpoolRecorder) Record(r audit.Record) error { return j.a.Record(r) }

// Close closes the recorder. The records remain in the spool.
func (j *SpoolRecorder) Close() error {
	j.a.mu.Lock()
	defer j.a.mu.Unlock()
	j.a.closed = true
	if s := j.a.spool.Load(); s != nil {
		return s.Close()
	}
	return nil
}
