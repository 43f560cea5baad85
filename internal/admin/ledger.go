package admin

import (
	"context"
	"fmt"
	"strconv"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/ledger"
)

// A Ledger reads the records about enrolled and retired tools in the store. It must be closed after use.
type Ledger struct {
	// Stream is the name of the ledger stream to which the servers of this configuration belong. A store may have
	// streams of several configurations.
	Stream string
	db     *store.DB
}

// OpenLedger opens the store, and selects the ledger stream of the configuration. If there is no store, it returns a
// *NoStoreError.
func (r *Service) OpenLedger(ctx context.Context) (*Ledger, error) {
	set, db, err := r.openRecords(ctx)
	if err != nil {
		return nil, err
	}
	paths := r.o.ConfigOptions
	return &Ledger{gateway.LedgerStream(set.Configuration, paths.Paths, paths.Dir), db}, nil
}

// Close closes the store.
func (l *Ledger) Close() error { return l.db.Close() }

// Entries returns the entries of the configuration's stream, oldest first.
func (l *Ledger) Entries(ctx context.Context) ([]ledger.Entry, error) {
	return l.db.Replay(ctx, l.Stream)
}

// Find returns the entries of l.Stream with this sequence number or this key. Only one entry has a number, but several
// may have the same key. If there is none, the error names the command that lists the entries.
func (l *Ledger) Find(ctx context.Context, numberOrKey string) (found []ledger.Entry, err error) {
	entries, err := l.Entries(ctx)
	if err != nil {
		return nil, err
	}
	seq, numErr := strconv.ParseUint(numberOrKey, 10, 64)
	for _, e := range entries {
		if numErr == nil && e.Seq == seq || string(e.Key) == numberOrKey {
			found = append(found, e)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the record %q has no event %s (drawbridge ledger log)", l.Stream, numberOrKey)
	}
	return found, nil
}

// Streams returns the names of all streams in the store.
func (l *Ledger) Streams(ctx context.Context) ([]string, error) { return l.db.LedgerStreams(ctx) }

// Verify checks the hash chain of a stream, and the saved summary of its live tools. It returns the number of records
// that it read. If the chain is damaged, the error names the first record that is missing, incomplete or changed.
func (l *Ledger) Verify(ctx context.Context, stream string) (int, error) {
	return verifyLedgerStream(ctx, l.db, stream)
}

func verifyLedgerStream(ctx context.Context, db *store.DB, stream string) (int, error) {
	n := 0
	err := ledger.VerifyChains(func(yield func(ledger.Record, error) bool) {
		for r, err := range db.LedgerRecords(ctx, stream) {
			n++
			if !yield(r, err) {
				return
			}
		}
	})
	if err == nil {
		err = db.VerifySavedFold(ctx, stream)
	}
	return n, err
}
