package store

import (
	"context"
	"crypto/ed25519"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/ledger"
)

// chainCheckpoints returns the checkpoints of a chain of the audit in the order of their positions.
func (db *DB) chainCheckpoints(ctx context.Context, stream string) ([]audit.Checkpoint, error) {
	const step = "read the checkpoints of the audit"
	rows, err := db.reader.QueryContext(ctx,
		"SELECT seq, hash, at, signer, signature FROM checkpoints WHERE stream = $1 ORDER BY seq", stream)
	if err != nil {
		return nil, db.fault(step, err)
	}
	defer rows.Close()
	var all []audit.Checkpoint
	for rows.Next() {
		c := audit.Checkpoint{Stream: stream}
		var hash []byte
		var at int64
		if rows.Scan(&c.Seq, &hash, &at, &c.Signer, &c.Signature) != nil || len(hash) != len(c.Hash) {
			return nil, db.fault(step, fmt.Errorf("the checkpoint at record %d is damaged", c.Seq))
		}
		c.Hash, c.At = [32]byte(hash), fromMillis(at)
		all = append(all, c)
	}
	if err := rows.Err(); err != nil {
		return nil, db.fault(step, err)
	}
	return all, nil
}

// A ChainReport is the result of a successful check of one hash chain of the audit.
type ChainReport struct {
	// Stream is the name of the chain.
	Stream string
	// Records is the number of records. First and Last are the positions of the first and the last record. Records
	// before First were removed.
	Records, First, Last uint64
	// RemovedAt is the time of the last removal of records, and RemovedBy the reason: "age", "number" or "bytes". Both
	// are empty if unknown, for example if an earlier release or another program removed the records.
	RemovedAt time.Time
	RemovedBy string
	// Loose reports whether old records were removed and no verified checkpoint signs the last removed record. Then
	// no signature protects the beginning of the chain.
	Loose bool
	// Signed is the last position that is signed with a trusted key, and SignedAt the time of that signature.
	Signed   uint64
	SignedAt time.Time
	// Unsigned is the time of the first record after the last checkpoint; zero if all records are signed.
	Unsigned time.Time
}

// An AuditReport is the result of a successful check of the audit: that of the chain AuditStream, and those of the
// Others, which processes wrote at the same time.
type AuditReport struct {
	ChainReport
	Others []ChainReport
	// Keys are the public keys of all verified signatures.
	Keys []ed25519.PublicKey
}

// All returns the reports of all chains.
func (r AuditReport) All() []ChainReport { return append([]ChainReport{r.ChainReport}, r.Others...) }

// VerifyAudit verifies the whole audit. In no chain a record may be missing, incomplete, out of order or edited. Each
// checkpoint must match the chain and be signed with a trusted key. If trusted is empty, each checkpoint is verified
// with the key that the checkpoint itself contains. What a chain says of the others must be true. The error names the
// first invalid position.
func (db *DB) VerifyAudit(ctx context.Context, trusted ...ed25519.PublicKey) (AuditReport, error) {
	var report AuditReport
	const step = "verify the audit"
	streams, err := db.auditChains(ctx)
	if err != nil {
		return report, db.fault(step, err)
	}
	anchors := map[string]chainHead{}
	for _, stream := range streams {
		c := ChainReport{Stream: stream}
		err := db.verifyChain(ctx, &c, &report.Keys, trusted, anchors)
		if stream == AuditStream {
			report.ChainReport = c
		} else {
			report.Others = append(report.Others, c)
		}
		if err != nil {
			return report, db.fault(step, err)
		}
	}
	for _, stream := range slices.Sorted(maps.Keys(anchors)) {
		if err := db.verifyAnchor(ctx, anchors[stream]); err != nil {
			return report, db.fault(step, err)
		}
	}
	return report, nil
}

// verifyChain verifies the chain report.Stream. It adds the ends of other chains that the chain names to anchors, for
// each the highest.
func (db *DB) verifyChain(ctx context.Context, report *ChainReport, keys *[]ed25519.PublicKey, trusted []ed25519.PublicKey,
	anchors map[string]chainHead) error {
	checkpoints, err := db.chainCheckpoints(ctx, report.Stream)
	if err != nil {
		return err
	}
	before, err := db.chainStart(ctx, report.Stream, time.Time{})
	if err != nil {
		return err
	}
	report.First = before.Seq + 1
	if err := db.readRemoval(ctx, report); err != nil {
		return err
	}
	w := checkpointVerifier{checkpoints: checkpoints, trusted: trusted, report: report, keys: keys}
	if err := w.checkRecord(before); err != nil {
		return err
	}
	report.Loose = before.Seq > 0 && report.Signed != before.Seq
	if err := db.eachChunk(ctx, before, func(c auditChunk) (bool, error) {
		for _, r := range c.records {
			if c.damage != nil && r.Seq >= c.damage.Seq {
				return false, c.damage
			}
			report.Records, report.Last = report.Records+1, r.Seq
			if err := w.checkRecord(r); err != nil {
				return false, err
			}
			if report.Signed == r.Seq {
				report.Unsigned = time.Time{}
			} else if report.Unsigned.IsZero() {
				report.Unsigned = r.At
			}
			if r.Kind == string(audit.Anchor) {
				if err := noteAnchor(r, anchors); err != nil {
					return false, err
				}
			}
		}
		return true, db.verifyIndexes(ctx, c)
	}); err != nil {
		return err
	}
	if len(w.checkpoints) > 0 {
		return &ledger.ChainError{Stream: report.Stream, Seq: w.checkpoints[0].Seq, Damage: ledger.DamageMissing}
	}
	return nil
}

// noteAnchor adds the end of another chain that the record r names to anchors.
func noteAnchor(r ledger.Record, anchors map[string]chainHead) error {
	var body anchorBody
	hash, err := []byte(nil), json.Unmarshal(r.Body, &body)
	if err == nil {
		hash, err = hex.DecodeString(body.Hash)
	}
	if err != nil || len(hash) != 32 || body.ID == r.Stream {
		return &ledger.ChainError{Stream: r.Stream, Seq: r.Seq, Damage: ledger.DamageTorn}
	}
	if body.Seq > anchors[body.ID].seq {
		anchors[body.ID] = chainHead{body.ID, body.Seq, [32]byte(hash)}
	}
	return nil
}

// verifyAnchor checks that a chain has the record that another chain names as its end. Since the chain itself is
// verified, the records before it are then the same too.
func (db *DB) verifyAnchor(ctx context.Context, want chainHead) error {
	start, err := db.chainStart(ctx, want.stream, time.Time{})
	if err != nil || start.Seq >= want.seq {
		return err // removed since
	}
	var hash []byte
	err = db.reader.QueryRowContext(ctx, `SELECT hash FROM audit_blocks WHERE stream = $1 AND last = $2
		AND first > $2 - $3 AND first <= $2`, want.stream, int64(want.seq), blockRecords).Scan(&hash)
	if errors.Is(err, sql.ErrNoRows) {
		err = db.reader.QueryRowContext(ctx, "SELECT hash FROM audit WHERE stream = $1 AND seq = $2", want.stream,
			int64(want.seq)).Scan(&hash)
	}
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return &ledger.ChainError{Stream: want.stream, Seq: want.seq, Damage: ledger.DamageMissing}
	case err != nil:
		return err
	case string(hash) != string(want.hash[:]):
		return &ledger.ChainError{Stream: want.stream, Seq: want.seq, Damage: ledger.DamageEdited}
	}
	return nil
}

// verifyIndexes checks that the indexes of a chunk's blocks are those of their records.
func (db *DB) verifyIndexes(ctx context.Context, c auditChunk) error {
	records := c.records
	for i, b := range c.blocks {
		n := int(b.last - max(b.first, records[0].Seq) + 1)
		if i == 0 && uint64(n) != b.last-b.first+1 {
			records = records[n:]
			continue // the chunk begins within the block
		}
		part := records[:n]
		records = records[n:]
		x := indexBlock(part, "")
		split, err := parseSplit(b.body)
		same := err == nil && (split.positions == nil || slices.Equal(split.positions, failedIn(part)))
		same = same && x.failed == b.index.failed && string(x.servers) == string(b.index.servers) &&
			string(x.callers) == string(b.index.callers)
		var outside []string
		for _, r := range part {
			if !isCallID(r.Key) || r.Key < b.index.low || r.Key > b.index.high {
				outside = append(outside, r.Key)
			}
		}
		if same && len(outside) > 0 {
			late, err := db.lateOf(ctx, b)
			if err != nil {
				return err
			}
			same = !slices.ContainsFunc(outside, func(key string) bool { return !late[key] })
		}
		if !same {
			return fmt.Errorf("records %d to %d of %s: %s: the index by which they are found is not theirs", b.first, b.last,
				b.stream, ledger.DamageEdited)
		}
	}
	return nil
}

// lateOf returns the keys of a block in audit_late.
func (db *DB) lateOf(ctx context.Context, b storedBlock) (map[string]bool, error) {
	rows, err := db.reader.QueryContext(ctx, "SELECT key FROM audit_late WHERE stream = $1 AND first = $2", b.stream,
		int64(b.first))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	late := map[string]bool{}
	for rows.Next() {
		var key string
		if err := rows.Scan(&key); err != nil {
			return nil, err
		}
		late[key] = true
	}
	return late, rows.Err()
}

// readRemoval reads the time and the reason of the last removal of records into report.
func (db *DB) readRemoval(ctx context.Context, report *ChainReport) error {
	var at int64
	err := db.reader.QueryRowContext(ctx, "SELECT at, reason FROM cuts WHERE stream = $1", report.Stream).Scan(&at,
		&report.RemovedBy)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	report.RemovedAt = fromMillis(at)
	return nil
}

// A checkpointVerifier verifies the checkpoints of the audit while the records are read in order.
type checkpointVerifier struct {
	checkpoints []audit.Checkpoint // the checkpoints that are not verified yet, ordered by position
	trusted     []ed25519.PublicKey
	report      *ChainReport
	keys        *[]ed25519.PublicKey
}

// checkRecord verifies the checkpoints at the position of r: their signatures, and that they contain the hash of r.
// It skips checkpoints before r, because their records were removed.
func (w *checkpointVerifier) checkRecord(r ledger.Record) error {
	for len(w.checkpoints) > 0 && w.checkpoints[0].Seq <= r.Seq {
		c := w.checkpoints[0]
		w.checkpoints = w.checkpoints[1:]
		if c.Seq < r.Seq {
			continue // its records were removed
		}
		if err := c.Verify(); err != nil {
			return err
		}
		if c.Hash != r.Hash {
			return fmt.Errorf("record %d of %s: %s: it differs from the record that the checkpoint of %s signed", r.Seq,
				r.Stream, ledger.DamageEdited, c.At.Format(time.RFC3339))
		}
		is := func(key ed25519.PublicKey) bool { return key.Equal(ed25519.PublicKey(c.Signer)) }
		if len(w.trusted) > 0 && !slices.ContainsFunc(w.trusted, is) {
			return fmt.Errorf("checkpoint at record %d: it is signed by %s, which is not a key that is trusted", c.Seq,
				audit.FormatPublicKey(c.Signer))
		}
		if !slices.ContainsFunc(*w.keys, is) {
			*w.keys = append(*w.keys, c.Signer)
		}
		w.report.Signed, w.report.SignedAt = c.Seq, c.At
	}
	return nil
}
