package store

import (
	"log/slog"
	"sync"

	"github.com/drawbridge-mcp/drawbridge/internal/audit"
)

// A SpoolRecorder records for a process that has no open store. The records stay in the spool until the next process
// that reads or writes the audit imports them.
type SpoolRecorder struct{ a *AuditWriter }

// NewSpoolRecorder returns a recorder with its spool in dir. It creates no file before the first record. If always is
// set, each record waits until it is on the disk.
func NewSpoolRecorder(dir string, rules audit.RedactionRules, always bool) *SpoolRecorder {
	return &SpoolRecorder{&AuditWriter{
		dir: dir, o: AuditOptions{Rules: rules, Sync: always, Logger: slog.New(slog.DiscardHandler)},
		woken:  make(chan struct{}, 1),
		frames: sync.Pool{New: func() any { return new([]byte) }},
	}}
}

// Record writes a record, as AuditWriter.Record does.
func (j *SpoolRecorder) Record(r audit.Record) error { return j.a.Record(r) }

// Close closes the recorder. Its records stay.
func (j *SpoolRecorder) Close() error {
	j.a.mu.Lock()
	defer j.a.mu.Unlock()
	j.a.closed = true
	if s := j.a.spool.Load(); s != nil {
		return s.Close()
	}
	return nil
}
