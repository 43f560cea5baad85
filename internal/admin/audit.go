package admin

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/ledger"
)

// followInterval is how often Follow polls the store for new records.
const followInterval = 250 * time.Millisecond

// Audit reads the record of calls. Close it after use.
type Audit struct {
	db *store.DB
	// lost reports that the store is not the one that was there before; nil if it is.
	lost error
}

// OpenAudit opens the audit and first stores the records that processes left behind when they died. The error is a
// *NoStoreError where no store exists.
func (r *Service) OpenAudit(ctx context.Context) (*Audit, error) {
	set, db, err := r.openRecords(ctx)
	if err != nil {
		return nil, err
	}
	a := &Audit{db: db, lost: gateway.CheckStore(ctx, r.o.Store, set.Settings, r.o.ConfigOptions.LookupEnv, db)}
	if a.lost != nil {
		return a, nil // the records that wait are those of the other one
	}
	if err := gateway.RecoverAudit(ctx, r.o.Gateway, db); err != nil {
		return nil, closeStore(db, err)
	}
	return a, nil
}

// Close closes the store.
func (a *Audit) Close() error { return a.db.Close() }

// Records returns the records stored since a moment as the store holds them, with their hashes.
func (a *Audit) Records(ctx context.Context, since time.Time) iter.Seq2[ledger.Record, error] {
	return a.db.AuditRecords(ctx, since)
}

// Call returns all records of one call. If no call has the ID, the error names the command that lists calls.
func (a *Audit) Call(ctx context.Context, id string) ([]ledger.Record, error) {
	records, err := a.db.AuditRecordsOfCall(ctx, id)
	if err == nil && len(records) == 0 {
		return nil, fmt.Errorf("the audit has no call %s (drawbridge audit log)", safetext.Line(id))
	}
	return records, err
}

// An AuditQuery selects calls. The zero value selects all.
type AuditQuery struct {
	Server string
	// Caller is a principal, or the beginning of a client's name.
	Caller string
	// Failed selects calls that were refused, failed or have no outcome.
	Failed bool
	Since  time.Time
	// Limit selects the last calls; 0 means all.
	Limit int
}

// matches reports whether the query selects a record.
func (q AuditQuery) matches(r audit.Record) bool {
	switch {
	case r.Kind == audit.Done: // of a call that began before Since
	case q.Server != "" && r.Server != q.Server:
	case q.Caller != "" && r.Caller.Principal != q.Caller && !strings.HasPrefix(r.Caller.Client, q.Caller):
	case q.Failed && (r.Kind == audit.Note || r.Kind == audit.Shield || !r.Outcome.Failed()):
	default:
		return true
	}
	return false
}

// Calls returns the selected calls, oldest first, each merged with its outcome. A call without an outcome is still
// running, or its process died.
func (a *Audit) Calls(ctx context.Context, q AuditQuery) ([]audit.Record, error) {
	calls, _, err := a.readCalls(ctx, q.Since)
	if err != nil {
		return nil, err
	}
	return q.selectCalls(calls, nil), nil
}

// selectCalls returns the calls that match, up to the limit. With open, calls that have no outcome go there instead.
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

// readCalls reads the calls since a moment, sorted by time, and the last stored record.
func (a *Audit) readCalls(ctx context.Context, since time.Time) (calls []audit.Record, end ledger.Record, err error) {
	var records []audit.Record
	end, err = eachAuditRecord(a.db.AuditRecords(ctx, since), since, func(r audit.Record) {
		records = append(records, r)
	})
	if err != nil {
		return nil, end, err
	}
	calls = audit.MergeOutcomes(records)
	// Each process stores its own records in batches, so the order in the store is not the order of the calls.
	slices.SortStableFunc(calls, func(a, b audit.Record) int { return a.At.Compare(b.At) })
	return calls, end, nil
}

// Follow calls show for the selected calls that ended already, and then for each call as it ends. It returns nil when
// ctx ends.
func (a *Audit) Follow(ctx context.Context, q AuditQuery, show func(audit.Record)) error {
	calls, end, err := a.readCalls(ctx, q.Since)
	if err != nil {
		return err
	}
	open := map[string]audit.Record{}
	for _, r := range q.selectCalls(calls, open) {
		show(r)
	}
	if end.Seq == 0 { // nothing since then: continue after the record before
		if end, err = a.db.LastAuditRecordBefore(ctx, q.Since); err != nil {
			return err
		}
	}
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	for {
		next, err := eachAuditRecord(a.db.AuditRecordsAfter(ctx, end), time.Time{}, func(r audit.Record) {
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
		if next.Seq > 0 {
			end = next
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// eachAuditRecord decodes records and calls each for those of calls made since a moment. It returns the last record
// it read. A record is stored after its call, so records stored later may be of earlier calls.
func eachAuditRecord(records iter.Seq2[ledger.Record, error], since time.Time, each func(audit.Record)) (
	end ledger.Record, err error) {
	for r, err := range records {
		if err != nil {
			return end, err
		}
		end = r
		rec, err := decodeAuditRecord(r)
		if err != nil {
			return end, err
		}
		if !rec.At.Before(since) {
			each(rec)
		}
	}
	return end, nil
}

// decodeAuditRecord decodes the body of a stored record. The error is a *ledger.ChainError.
func decodeAuditRecord(r ledger.Record) (audit.Record, error) {
	rec, err := audit.DecodeRecord(r.Body)
	if err != nil {
		return rec, &ledger.ChainError{Stream: r.Stream, Seq: r.Seq, Damage: ledger.DamageTorn}
	}
	return rec, nil
}

// isOpenCall reports whether a record begins a call whose outcome follows in another record.
func isOpenCall(r audit.Record) bool {
	return (r.Kind == audit.Call || r.Kind == audit.AdminAction) && r.Outcome == ""
}
