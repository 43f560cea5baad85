package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/ledger"
	"golang.org/x/sync/errgroup"
)

// An AuditFilter selects records of the audit. The zero value selects all.
type AuditFilter struct {
	// Since selects the records that were made at that time or later.
	Since time.Time
	// Server selects records with this server. Caller selects the calls of this principal, and of clients whose name
	// begins with this text. Failed selects the calls that were refused, that failed, or without an outcome. The zero
	// values select all.
	Server, Caller string
	Failed         bool
}

// FindAudit returns the calls and other records that may match a filter, each call merged with its outcome. It finds
// them without reading all records. It may return others, too: the caller checks each. The records are in no particular
// order.
func (db *DB) FindAudit(ctx context.Context, f AuditFilter) ([]audit.Record, error) {
	const step = "search the audit"
	var unpacked bool
	if err := db.reader.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM audit WHERE stream = $1)", AuditStream).
		Scan(&unpacked); err != nil {
		return nil, db.fault(step, err)
	}
	if unpacked {
		return db.scanAudit(ctx, f.Since)
	}
	places, err := db.blocksOfFilter(ctx, f)
	if err != nil {
		return nil, db.fault(step, err)
	}
	all, resolve, err := db.findInBlocks(ctx, places, f)
	if err != nil {
		return nil, db.fault(step, err)
	}
	if all, err = db.resolveCalls(ctx, all, resolve); err != nil {
		return nil, db.fault(step, err)
	}
	return all, nil
}

// findInBlocks returns what findInBlock returns for each of the named blocks. It unpacks several at the same time.
func (db *DB) findInBlocks(ctx context.Context, places []blockPlace, f AuditFilter) (all []audit.Record, late []string, err error) {
	var mu sync.Mutex
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(auditDecoders)
	for part := range slices.Chunk(places, chunkBlocks) {
		work.Go(func() error {
			var buffer blockBuffer
			return db.eachBlock(ctx, part, func(b storedBlock) error {
				found, unfinished, err := db.findInBlock(&buffer, b, f)
				mu.Lock()
				defer mu.Unlock()
				all, late = append(all, found...), append(late, unfinished...)
				return err
			})
		})
	}
	err = work.Wait()
	return all, late, err
}

// scanAudit returns all records since a time.
func (db *DB) scanAudit(ctx context.Context, since time.Time) ([]audit.Record, error) {
	var all []audit.Record
	for r, err := range db.AuditRecords(ctx, since) {
		if err != nil {
			return nil, err
		}
		rec, err := audit.DecodeRecord(r.Body)
		if err != nil {
			return nil, &ledger.ChainError{Stream: r.Stream, Seq: r.Seq, Damage: ledger.DamageTorn}
		}
		if rec.Kind != audit.Anchor && !rec.At.Before(since) {
			all = append(all, rec)
		}
	}
	return audit.MergeOutcomes(all), nil
}

// A blockPlace names a block.
type blockPlace struct {
	stream string
	first  int64
}

// blocksOfFilter returns the blocks that may have records for a filter, in the order of their times.
func (db *DB) blocksOfFilter(ctx context.Context, f AuditFilter) (places []blockPlace, err error) {
	query, since := "SELECT stream, first, servers, callers FROM audit_blocks WHERE at >= $1", int64(0)
	if f.Server == "" && f.Caller == "" {
		query = "SELECT stream, first, NULL, NULL FROM audit_blocks WHERE at >= $1"
	}
	if f.Failed {
		query += " AND failed > 0"
	}
	if !f.Since.IsZero() {
		since = f.Since.UnixMilli()
	}
	rows, err := db.reader.QueryContext(ctx, query+" ORDER BY at, stream, first", since)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var p blockPlace
		var servers, callers sql.RawBytes
		if err := rows.Scan(&p.stream, &p.first, &servers, &callers); err != nil {
			return nil, err
		}
		if (f.Server == "" || mayHave(servers, func(name string) bool { return name == f.Server })) &&
			(f.Caller == "" || mayHave(callers, func(name string) bool { return strings.HasPrefix(name, f.Caller) })) {
			places = append(places, p)
		}
	}
	return places, rows.Err()
}

// eachBlock calls each for the named blocks. A block that was removed meanwhile is left out.
func (db *DB) eachBlock(ctx context.Context, places []blockPlace, each func(storedBlock) error) error {
	query, err := db.reader.PrepareContext(ctx, "SELECT "+blockColumns+" FROM audit_blocks WHERE stream = $1 AND first = $2")
	if err != nil {
		return err
	}
	defer query.Close()
	one := func(p blockPlace) error {
		rows, err := query.QueryContext(ctx, p.stream, p.first)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			b, err := scanAuditBlock(rows)
			if err != nil {
				return &ledger.ChainError{Stream: p.stream, Seq: uint64(p.first), Damage: ledger.DamageTorn}
			}
			if err := each(b); err != nil {
				return err
			}
		}
		return rows.Err()
	}
	for _, p := range places {
		if err := one(p); err != nil {
			return err
		}
	}
	return nil
}

// findInBlock returns the records of a block that may match a filter, merged with the outcomes in the block. late are
// the IDs of calls that have records in other blocks, or may have some. The records do not share memory with the
// buffer.
func (db *DB) findInBlock(buffer *blockBuffer, b storedBlock, f AuditFilter) (found []audit.Record, late []string, err error) {
	torn := &ledger.ChainError{Stream: b.stream, Seq: b.first, Damage: ledger.DamageTorn}
	parts, err := db.blocks.decodeInto(buffer, b.body, f.Failed)
	if err != nil {
		return nil, nil, torn
	}
	wanted := map[string]bool{}
	for _, p := range parts {
		kind := audit.RecordKind(p.kind)
		if kind == audit.Done || kind == audit.Anchor || f.Failed && !mayHaveFailed(p.kind, p.body) {
			continue
		}
		s, err := audit.Summarize(p.body)
		if err != nil {
			return nil, nil, torn
		}
		if f.Server != "" && !mayHave(oneName(s.Server), func(name string) bool { return name == f.Server }) {
			continue
		}
		if f.Caller != "" && !mayHave(oneName(s.Principal), func(name string) bool { return name == f.Caller }) &&
			!mayHave(oneName(s.Client), func(name string) bool { return strings.HasPrefix(name, f.Caller) }) {
			continue
		}
		wanted[string(p.key)] = true
	}
	if len(wanted) == 0 {
		return nil, nil, nil
	}
	var records []audit.Record
	for _, p := range parts {
		if !wanted[string(p.key)] {
			continue
		}
		r, err := audit.DecodeRecord(p.body)
		if err != nil {
			return nil, nil, torn
		}
		if !r.At.Before(f.Since) {
			records = append(records, r)
		}
	}
	found = audit.MergeOutcomes(records)
	for _, r := range found {
		if isCall(r) && (r.Outcome == "" || !isCallID(r.ID) || r.ID < b.index.low || r.ID > b.index.high) {
			late = append(late, r.ID)
		}
	}
	return found, late, nil
}

// oneName returns a JSON list with a name, or an empty list.
func oneName(name []byte) []byte {
	return append(append([]byte("["), name...), ']')
}

// isCall reports whether a record is about a call or a person's action, and not only its outcome.
func isCall(r audit.Record) bool { return r.Kind == audit.Call || r.Kind == audit.AdminAction }

// resolveCalls replaces the calls with the given IDs that have records in several blocks by the merged records of all
// these blocks.
func (db *DB) resolveCalls(ctx context.Context, all []audit.Record, ids []string) ([]audit.Record, error) {
	slices.Sort(ids)
	merged := map[string]audit.Record{}
	for part := range slices.Chunk(slices.Compact(ids), writeRows) {
		late, err := db.lateIDs(ctx, part)
		if err != nil {
			return nil, err
		}
		for _, id := range late {
			stored, err := db.AuditRecordsOfCall(ctx, id)
			if err != nil {
				return nil, err
			}
			var records []audit.Record
			for _, s := range stored {
				r, err := audit.DecodeRecord(s.Body)
				if err != nil {
					return nil, &ledger.ChainError{Stream: s.Stream, Seq: s.Seq, Damage: ledger.DamageTorn}
				}
				records = append(records, r)
			}
			for _, r := range audit.MergeOutcomes(records) {
				if isCall(r) {
					merged[id] = r
				}
			}
		}
	}
	if len(merged) == 0 {
		return all, nil
	}
	kept := all[:0]
	done := map[string]bool{}
	for _, r := range all {
		if m, ok := merged[r.ID]; ok && isCall(r) {
			if done[r.ID] {
				continue
			}
			r, done[r.ID] = m, true
		}
		kept = append(kept, r)
	}
	return kept, nil
}

// lateIDs returns those of the given IDs that audit_late has.
func (db *DB) lateIDs(ctx context.Context, ids []string) (late []string, err error) {
	var b strings.Builder
	b.WriteString("SELECT DISTINCT key FROM audit_late WHERE key IN (")
	db.dialect.writeParameters(&b, 1, len(ids))
	b.WriteByte(')')
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	rows, err := db.reader.QueryContext(ctx, b.String(), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		late = append(late, id)
	}
	return late, rows.Err()
}

// AuditRecordsOfCall returns the audit records of the call with the given ID, in order.
func (db *DB) AuditRecordsOfCall(ctx context.Context, id string) ([]ledger.Record, error) {
	const step = "read the audit"
	unpacked, err := db.unpackedOfCall(ctx, id)
	if err != nil {
		return nil, db.fault(step, err)
	}
	places, err := db.blocksOfCall(ctx, id)
	if err != nil {
		return nil, db.fault(step, err)
	}
	all := unpacked
	err = db.eachBlock(ctx, places, func(b storedBlock) error {
		parts, err := db.blocks.decode(b.body)
		if err != nil {
			return &ledger.ChainError{Stream: b.stream, Seq: b.first, Damage: ledger.DamageTorn}
		}
		for i, p := range parts {
			if string(p.key) == id {
				all = append(all, ledger.Record{Stream: b.stream, Seq: b.first + uint64(i), At: time.UnixMilli(p.at).UTC(),
					Kind: string(p.kind), Key: id, Body: p.body})
			}
		}
		return nil
	})
	if err != nil {
		return nil, db.fault(step, err)
	}
	slices.SortStableFunc(all, func(a, b ledger.Record) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Stream, b.Stream), cmp.Compare(a.Seq, b.Seq))
	})
	// A record that was packed into a block between the two queries is there twice.
	return slices.CompactFunc(all, func(a, b ledger.Record) bool { return a.Stream == b.Stream && a.Seq == b.Seq }), nil
}

// blocksOfCall returns the blocks that may have records with a key.
func (db *DB) blocksOfCall(ctx context.Context, key string) (places []blockPlace, err error) {
	query, args := "SELECT stream, first FROM audit_late WHERE key = $1", []any{key}
	if isCallID(key) {
		query += " UNION SELECT stream, first FROM audit_blocks WHERE low <= $2 AND high >= $2"
		args = append(args, []byte(key))
	}
	rows, err := db.reader.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var p blockPlace
		if err := rows.Scan(&p.stream, &p.first); err != nil {
			return nil, err
		}
		places = append(places, p)
	}
	return places, rows.Err()
}

// unpackedOfCall returns the records with a key that are not in blocks yet.
func (db *DB) unpackedOfCall(ctx context.Context, key string) (all []ledger.Record, err error) {
	rows, err := db.reader.QueryContext(ctx,
		"SELECT seq, at, kind, body FROM audit WHERE key = $1 AND stream = $2 ORDER BY seq", key, AuditStream)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		r := ledger.Record{Stream: AuditStream, Key: key}
		var at int64
		if err := rows.Scan(&r.Seq, &at, &r.Kind, &r.Body); err != nil {
			return nil, &ledger.ChainError{Stream: AuditStream, Seq: r.Seq, Damage: ledger.DamageTorn}
		}
		r.At = time.UnixMilli(at).UTC()
		all = append(all, r)
	}
	return all, rows.Err()
}
