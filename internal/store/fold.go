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
	// foldRows is the number of ledger entries that are applied to a snapshot at once. It limits the number of
	// entries in memory.
	foldRows = 4096
	// foldSaveAfter is the minimum number of records that FoldStream must have read to save its result.
	foldSaveAfter = 2048
	// foldSaveTimeout is the time limit for saving the result of FoldStream. It is short, because the caller of
	// FoldStream waits meanwhile.
	foldSaveTimeout = time.Second
)

// FoldStream implements [ledger.StreamFolder]: it applies the entries of a stream in order and returns the resulting
// snapshot. It starts with the snapshot that an earlier call saved, and applies only the later entries. If there were
// many later entries, it saves the new snapshot. So the duration does not grow with the length of the stream. A saved
// snapshot is used only if its last record still exists unchanged.
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

// foldFrom applies the records after the record end to the snapshot s. It stops after the position until; 0 means
// that it applies all records. It returns the new snapshot, the last applied record and the number of applied
// records.
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

// VerifySavedFold checks that the saved snapshot of a stream equals the snapshot that results from the stream's
// records. The check is necessary because the hash chain protects only the records. If no snapshot is saved,
// VerifySavedFold returns nil. The error is a *drawbridge.Fault.
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

// foldName returns the name of a stream's saved snapshot in the table blobs.
func foldName(stream string) string { return "fold " + stream }

// savedFold returns the saved snapshot of a stream and the last record that was applied to it. A snapshot is not
// usable if its last record was changed or removed. Without a usable snapshot, savedFold returns an empty snapshot
// and the position before the first record.
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

// saveFold saves the snapshot of a stream up to the record end. It ignores errors: the next FoldStream then reads the
// same records again.
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
