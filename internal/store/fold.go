package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/ledger"
)

const (
	// foldRows is the number of entries that are folded at once, and so the number of entries in memory.
	foldRows = 4096
	// foldSaveAfter is the number of records that a fold must read before its result is saved for the next fold.
	foldSaveAfter = 2048
	// foldSaveTimeout is the time limit for saving a fold, because a caller waits for the result.
	foldSaveTimeout = time.Second
)

// FoldStream implements [ledger.StreamFolder]. It continues from the last saved fold, and saves its result if it has
// read many records. So the duration does not grow with the length of the stream. A saved fold is used only if its
// last record still exists.
func (db *DB) FoldStream(ctx context.Context, stream string) (ledger.Snapshot, error) {
	step := "fold " + stream
	s, end, err := db.savedFold(ctx, stream)
	if err != nil {
		return ledger.Snapshot{}, db.fault(step, err)
	}
	s, end, read, err := db.foldFrom(ctx, stream, s, end, 0)
	if err != nil {
		return ledger.Snapshot{}, db.fault(step, err)
	}
	if read >= foldSaveAfter {
		db.saveFold(ctx, stream, s, end)
	}
	return s, nil
}

// foldFrom folds the records after end into s, up to the position until, or all records if until is 0. It also
// returns the last folded record and the number of records read.
func (db *DB) foldFrom(ctx context.Context, stream string, s ledger.Snapshot, end ledger.Record,
	until uint64) (ledger.Snapshot, ledger.Record, int, error) {
	var entries []ledger.Entry
	for read := 0; ; {
		page, err := db.readPage(ctx, ledgerTable, stream, end)
		last := len(page) < readRows
		for _, r := range page {
			if last = last || until > 0 && r.Seq >= until; until > 0 && r.Seq > until {
				break
			}
			e, err := ledger.DecodeRecord(r)
			if err != nil {
				return s, end, read, err
			}
			entries = append(entries, e)
			end = r
			read++
		}
		if err != nil {
			return s, end, read, err
		}
		if last || len(entries) >= foldRows {
			s, entries = s.With(entries...), entries[:0]
		}
		if last {
			return s, end, read, nil
		}
	}
}

// VerifySavedFold checks that the saved fold of a stream equals the fold of the stream's records. The check is
// necessary because the hash chain does not protect the saved fold. Without a saved fold it returns nil. The error
// is a *drawbridge.Fault.
func (db *DB) VerifySavedFold(ctx context.Context, stream string) error {
	step := "fold " + stream
	kept, end, err := db.savedFold(ctx, stream)
	if err != nil {
		return db.fault(step, err)
	}
	if end.Seq == 0 {
		return nil
	}
	s, _, _, err := db.foldFrom(ctx, stream, ledger.Snapshot{}, ledger.Record{Stream: stream}, end.Seq)
	if err != nil {
		return db.fault(step, err)
	}
	want, err := s.Encode()
	if err != nil {
		return db.fault(step, err)
	}
	if have, err := kept.Encode(); err != nil || !bytes.Equal(have, want) {
		return db.newFault(step, drawbridge.ServerError,
			fmt.Errorf("its saved state up to record %d differs from its records", end.Seq))
	}
	return nil
}

// foldName returns the name of a stream's saved fold in the table blobs.
func foldName(stream string) string { return "fold " + stream }

// savedFold returns the saved fold of a stream and the last record of that fold. If no usable fold is saved, or its
// last record has changed, it returns an empty fold and the position before the first record.
func (db *DB) savedFold(ctx context.Context, stream string) (s ledger.Snapshot, end ledger.Record, err error) {
	end.Stream = stream
	var kept, hash []byte
	err = db.reader.QueryRowContext(ctx, "SELECT value FROM blobs WHERE name = $1", foldName(stream)).Scan(&kept)
	if errors.Is(err, sql.ErrNoRows) {
		return s, end, nil
	}
	if err != nil || len(kept) < len(end.Hash) {
		return s, end, err
	}
	earlier, err := ledger.DecodeSnapshot(kept[len(end.Hash):])
	if err != nil {
		return s, end, nil // ignore a damaged fold
	}
	err = db.reader.QueryRowContext(ctx, "SELECT hash FROM ledger WHERE stream = $1 AND seq = $2", stream,
		int64(earlier.HighWater())).Scan(&hash)
	if errors.Is(err, sql.ErrNoRows) || err == nil && string(hash) != string(kept[:len(end.Hash)]) {
		return s, end, nil
	}
	if err != nil {
		return s, end, err
	}
	end.Seq, end.Hash = earlier.HighWater(), [32]byte(hash)
	return earlier, end, nil
}

// saveFold saves the fold of a stream up to the record end. It ignores errors: the next fold then reads the records
// again.
func (db *DB) saveFold(ctx context.Context, stream string, s ledger.Snapshot, end ledger.Record) {
	text, err := s.Encode()
	if err != nil || s.HighWater() != end.Seq {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, foldSaveTimeout)
	defer cancel()
	_ = db.execWrite(ctx, "save the state of a ledger",
		"INSERT INTO blobs (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
		foldName(stream), append(end.Hash[:], text...))
}
