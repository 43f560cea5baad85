package admin

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/ledger"
)

// followInterval is the time between two reads of the store by Follow.
const followInterval = 250 * time.Millisecond

// An Audit reads the audit records in the store. It must be closed after use.
type Audit struct {
	db *store.DB
	// lost is set if another store was at the configured location before; it is nil if this is the expected store.
	lost error
}

// OpenAudit opens the audit. It first moves records into the store that a process wrote to its spool file but could not
// store before it died. It does not move them if another store was at the configured location before, because they
// belong to that store. If there is no store, it returns a *NoStoreError.
func (r *Service) OpenAudit(ctx context.Context) (*Audit, error) {
	set, db, err := r.openRecords(ctx)
	if err != nil {
		return nil, err
	}
	a := &Audit{db: db, lost: gateway.CheckStore(ctx, r.o.Store, set.Settings, r.o.ConfigOptions.LookupEnv, db)}
	if a.lost != nil {
		return a, nil // the waiting records belong to the earlier store
	}
	if err := gateway.RecoverAudit(ctx, r.o.Gateway, db); err != nil {
		return nil, closeStore(db, err)
	}
	return a, nil
}

// Close closes the store.
func (a *Audit) Close() error { return a.db.Close() }

// Records returns the stored records with their hashes, in stored order. It begins with the first record that was
// stored at since or later.
func (a *Audit) Records(ctx context.Context, since time.Time) iter.Seq2[ledger.Record, error] {
	return a.db.AuditRecords(ctx, since)
}

// Call returns all records of the call with this ID. If there are none, the error names the command that lists the
// calls.
func (a *Audit) Call(ctx context.Context, id string) ([]ledger.Record, error) {
	records, err := a.db.AuditRecordsOfCall(ctx, id)
	if err == nil && len(records) == 0 {
		return nil, fmt.Errorf("the audit has no call %s (drawbridge audit log)", safetext.Line(id))
	}
	return records, err
}

// An AuditQuery selects calls and other records of the audit. The zero value selects all.
type AuditQuery struct {
	Server string
	// Caller selects the calls of this principal, and of clients whose name begins with this text.
	Caller string
	// Failed selects only calls that were refused, that failed, or whose outcome is not recorded.
	Failed bool
	Since  time.Time
	// Limit is the maximum number of results; if there are more, the last ones are returned. 0 means no limit.
	Limit int
}

// matches reports whether the query selects the record r. It does not check Since and Limit.
func (q AuditQuery) matches(r audit.Record) bool {
	switch {
	case r.Kind == audit.Done, r.Kind == audit.Anchor: // the call of Done began before Since
	case q.Server != "" && r.Server != q.Server:
	case q.Caller != "" && r.Caller.Principal != q.Caller && !strings.HasPrefix(r.Caller.Client, q.Caller):
	case q.Failed && (r.Kind == audit.Note || r.Kind == audit.Shield || !r.Outcome.Failed()):
	default:
		return true
	}
	return false
}

// Calls returns the selected calls, oldest first. A call has two records, one for its start and one for its outcome,
// which are merged. A call without an outcome is still running, or its process died. Records that are not about a call,
// such as a person's decisions, are included.
func (a *Audit) Calls(ctx context.Context, q AuditQuery) ([]audit.Record, error) {
	var calls []audit.Record
	var err error
	if q.Server == "" && q.Caller == "" && !q.Failed {
		calls, _, err = a.readCalls(ctx, q.Since)
	} else {
		calls, err = a.db.FindAudit(ctx, store.AuditFilter{Since: q.Since, Server: q.Server, Caller: q.Caller, Failed: q.Failed})
		sortByTime(calls)
	}
	if err != nil {
		return nil, err
	}
	return q.selectCalls(calls, nil), nil
}

// sortByTime sorts calls by the times when they began. Each process stores its own records in batches. So the records are
// not stored in the order of the calls.
func sortByTime(calls []audit.Record) {
	slices.SortStableFunc(calls, func(a, b audit.Record) int { return cmp.Or(a.At.Compare(b.At), strings.Compare(a.ID, b.ID)) })
}

// Pack moves records that an earlier release stored one by one into blocks, in which they are found without reading all.
// report is called with the number of records that were moved and the number of all, after each part.
func (a *Audit) Pack(ctx context.Context, report func(moved, all int64)) error {
	all, err := a.db.UnpackedAudit(ctx)
	if err != nil || all == 0 || a.lost != nil {
		return err
	}
	return a.db.PackAudit(ctx, func(moved int64) { report(moved, all) })
}

// selectCalls returns the calls that the query selects; if there are more than q.Limit, the last ones. If open is not
// nil, calls without an outcome are not returned, but added to open by ID.
func (q AuditQuery) selectCalls(calls []audit.Record, open map[string]audit.Record) []audit.Record {
	shown := make([]audit.Record, 0, len(calls))
	for _, r := range calls {
		if open != nil && isOpenCall(r) {
			open[r.ID] = r
		} else if q.matches(r) {
			shown = append(shown, r)
		}
	}
	if q.Limit > 0 && len(shown) > q.Limit {
		shown = shown[len(shown)-q.Limit:]
	}
	return shown
}

// readCalls returns the calls that began at since or later, sorted by time, merged with their outcomes. end is the position
// after the last record that it read.
func (a *Audit) readCalls(ctx context.Context, since time.Time) (calls []audit.Record, end store.AuditPosition, err error) {
	if end, err = a.db.AuditPositionBefore(ctx, since); err != nil {
		return nil, nil, err
	}
	var records []audit.Record
	if err := a.readAfter(ctx, end, since, func(r audit.Record) { records = append(records, r) }); err != nil {
		return nil, nil, err
	}
	calls = audit.MergeOutcomes(records)
	sortByTime(calls)
	return calls, end, nil
}

// Follow calls show for each selected call that has already ended. Then it waits, and calls show for each further
// selected call as soon as its outcome is stored. It returns nil when ctx ends.
func (a *Audit) Follow(ctx context.Context, q AuditQuery, show func(audit.Record)) error {
	calls, end, err := a.readCalls(ctx, q.Since)
	if err != nil {
		return err
	}
	open := map[string]audit.Record{}
	for _, r := range q.selectCalls(calls, open) {
		show(r)
	}
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	for {
		err := a.readAfter(ctx, end, time.Time{}, func(r audit.Record) {
			begun, known := open[r.ID]
			switch {
			case isOpenCall(r):
				open[r.ID] = r
				return
			case r.Kind == audit.Done && known:
				delete(open, r.ID)
				r = audit.MergeOutcomes([]audit.Record{begun, r})[0]
			}
			if q.matches(r) {
				show(r)
			}
		})
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// readAfter decodes the records after the position end, which it moves, and calls each for every record whose time is since
// or later. It skips other records: a record is stored later than it was made, so records that were stored after since may
// have an earlier time. It skips anchors, which are about no call.
func (a *Audit) readAfter(ctx context.Context, end store.AuditPosition, since time.Time, each func(audit.Record)) error {
	for r, err := range a.db.AuditRecordsAfter(ctx, maps.Clone(end)) {
		if err != nil {
			return err
		}
		end.Advance(r)
		if r.Kind == string(audit.Anchor) {
			continue
		}
		rec, err := decodeAuditRecord(r)
		if err != nil {
			return err
		}
		if !rec.At.Before(since) {
			each(rec)
		}
	}
	return nil
}

// decodeAuditRecord decodes the body of a stored record. The error is a *ledger.ChainError.
func decodeAuditRecord(r ledger.Record) (audit.Record, error) {
	rec, err := audit.DecodeRecord(r.Body)
	if err != nil {
		return rec, &ledger.ChainError{Stream: r.Stream, Seq: r.Seq, Damage: ledger.DamageTorn}
	}
	return rec, nil
}

// isOpenCall reports whether a record is about the start of a call or of a person's action. Such a record has no
// outcome; a later record has it.
func isOpenCall(r audit.Record) bool {
	return (r.Kind == audit.Call || r.Kind == audit.AdminAction) && r.Outcome == ""
}

// FurtherChain returns the name of a record's hash chain, or an empty string for the first chain.
func FurtherChain(r ledger.Record) string {
	if r.Stream == store.AuditStream {
		return ""
	}
	return r.Stream
}
