package store_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/ledger"
	"github.com/google/go-cmp/cmp"
	"github.com/oklog/ulid/v2"
)

// FuzzBlock decodes blocks that a person with access to the store wrote. What can be decoded stays the same when it is
// encoded again.
func FuzzBlock(f *testing.F) {
	db := open(f, filepath.Join(f.TempDir(), "store.db"))
	a := db.NewAuditWriter(f.TempDir(), store.AuditOptions{})
	record(f, a, "1", "2", "3")
	if err := a.Close(f.Context()); err != nil {
		f.Fatal(err)
	}
	check(f, db.EditFirstBlock(f.Context(), func(e *store.BlockEditor) {
		for _, n := range []int{1, len(e.Records)} {
			body, err := store.EncodeBlock(e.Records[:n])
			check(f, err)
			f.Add(body)
		}
	}))
	many := make([]ledger.Record, 100)
	for i := range many {
		many[i] = ledger.Record{At: time.UnixMilli(int64(i)), Kind: "call", Key: fmt.Sprint(i), Body: []byte(`{"outcome":"ok"}`)}
	}
	many[7].Body, many[99].Body = []byte(`{"outcome":"fault"}`), []byte(`{}`)
	body, err := store.EncodeBlock(many)
	check(f, err)
	f.Add(body)
	f.Add([]byte{1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, body []byte) {
		once, err := store.ParseBlock(body)
		if err != nil {
			return
		}
		twice, err := store.ParseBlock(once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%x becomes %x, and then %x: %v", body, once, twice, err)
		}
	})
}

// aCall is a call that began at a time, and its outcome.
func aCall(at time.Time, server, principal string, outcome audit.Outcome) (call, done audit.Record) {
	id := ulid.MustNew(ulid.Timestamp(at), ulid.DefaultEntropy()).String()
	return audit.Record{ID: id, Kind: audit.Call, At: at, Caller: audit.Caller{Kind: "external", Principal: principal,
			Client: "editor " + principal}, Method: "tools/call", Card: server + "__x", Server: server, Tool: "x",
			Arguments: json.RawMessage(`{"a":{"outcome":"ok"}}`), Effect: "allow"},
		audit.Record{ID: id, Kind: audit.Done, At: at.Add(time.Second), Outcome: outcome, Duration: time.Second, Bytes: 7}
}

// TestOneRecordACall completes calls in place, and later than their records were stored.
func TestOneRecordACall(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		db := open(t, location)
		a := db.NewAuditWriter(t.TempDir(), store.AuditOptions{})
		now := time.Now().UTC().Truncate(time.Millisecond)
		soon, soonDone := aCall(now, "fs", "ada", audit.OK)
		late, lateDone := aCall(now, "fs", "ada", audit.Fault)
		open, _ := aCall(now, "fs", "ada", "")
		other, otherDone := aCall(now, "fs", "ada", audit.OK)
		otherDone.Rewritten = "guard: result sha256:00"
		slots := map[string]audit.Slot{}
		for _, r := range []audit.Record{soon, late, open, other} {
			slot, err := a.RecordOpen(r)
			check(t, err)
			slots[r.ID] = slot
		}
		check(t, a.Complete(slots[soon.ID], soonDone))
		check(t, a.Complete(slots[other.ID], otherDone))
		check(t, a.Drain(t.Context()))
		check(t, a.Complete(slots[late.ID], lateDone))
		check(t, a.Record(audit.FlaggedRecord(soon.ID, "fs", "fs__x", "x", []string{"rule"})))
		check(t, a.Close(t.Context()))
		for id, want := range map[string][]string{
			soon.ID: {"call ok", "shield "}, late.ID: {"call ", "done fault"}, open.ID: {"call "},
			other.ID: {"call ", "done ok"},
		} {
			stored, err := db.AuditRecordsOfCall(t.Context(), id)
			check(t, err)
			var got []string
			for _, s := range stored {
				r, err := audit.DecodeRecord(s.Body)
				check(t, err)
				got = append(got, s.Kind+" "+string(r.Outcome))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		}
		report, err := db.VerifyAudit(t.Context())
		if err != nil || report.Records != 7 {
			t.Errorf("%+v, %v", report, err)
		}
		var found []string
		records, err := db.FindAudit(t.Context(), store.AuditFilter{Failed: true})
		check(t, err)
		for _, r := range records {
			if r.Outcome.Failed() {
				found = append(found, r.ID)
			}
		}
		slices.Sort(found)
		want := []string{late.ID, open.ID}
		slices.Sort(want)
		if diff := cmp.Diff(want, found); diff != "" {
			t.Error(diff)
		}
	})
}

// TestCompleteWhileRecordsAreStored has callers complete records while they are stored.
func TestCompleteWhileRecordsAreStored(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		db := open(t, location)
		a := db.NewAuditWriter(t.TempDir(), store.AuditOptions{})
		ctx, stop := context.WithCancel(t.Context())
		var storing, callers sync.WaitGroup
		storing.Go(func() {
			for ctx.Err() == nil {
				if err := a.Drain(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
		const each = 400
		for range 4 {
			callers.Go(func() {
				for range each {
					call, done := aCall(time.Now(), "fs", "ada", audit.OK)
					slot, err := a.RecordOpen(call)
					if err == nil {
						err = a.Complete(slot, done)
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		callers.Wait()
		stop()
		storing.Wait()
		check(t, a.Close(t.Context()))
		_, all := auditOf(t, db)
		for id, r := range all {
			if r.Outcome != audit.OK || r.Bytes != 7 {
				t.Fatalf("%s: %+v", id, r)
			}
		}
		if len(all) != 4*each {
			t.Errorf("%d calls, want %d", len(all), 4*each)
		}
	})
}

// randomAudit stores calls of several servers and callers: some fail, some stay open, some end after their record was
// stored, some are sent to two servers. In the second half, blocks are large and few calls fail.
func randomAudit(t *testing.T, location string, calls int) *store.DB {
	t.Helper()
	db, random := open(t, location), rand.New(rand.NewPCG(1, 2))
	a := db.NewAuditWriter(t.TempDir(), store.AuditOptions{})
	outcomes := []audit.Outcome{audit.OK, audit.OK, audit.OK, audit.OK, audit.IsError, audit.Fault, audit.Task, ""}
	var later []func()
	for n := range calls {
		outcome, large := outcomes[random.IntN(len(outcomes))], n > calls/2
		if large && random.IntN(12) > 0 {
			outcome = audit.OK
		}
		call, done := aCall(time.Now().Add(time.Duration(n-2*calls)*time.Millisecond), fmt.Sprint("server-", random.IntN(9)),
			fmt.Sprint("caller-", random.IntN(9)), outcome)
		if random.IntN(20) == 0 {
			call.ID = fmt.Sprint("odd-", n) // an ID of another form
			done.ID = call.ID
		}
		slot, err := a.RecordOpen(call)
		check(t, err)
		finish := func() {
			if done.Outcome == "" {
				return
			}
			if random.IntN(5) == 0 && (!large || random.IntN(10) == 0) {
				call.Server, call.Card = "second", "second__x"
				slot, err = a.RecordOpen(call)
				check(t, err)
			}
			check(t, a.Complete(slot, done))
		}
		if random.IntN(4) == 0 {
			later = append(later, finish)
		} else {
			finish()
		}
		if n%37 == 0 && (!large || n%10 == 0) {
			check(t, a.Drain(t.Context()))
		}
		for len(later) > 0 && n%53 == 0 {
			later[0]()
			later = later[1:]
		}
	}
	for _, finish := range later {
		finish()
	}
	check(t, a.Close(t.Context()))
	return db
}

// TestFindAuditIsAScan compares what is found by the columns of the blocks with what a scan of all records finds.
func TestFindAuditIsAScan(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		db := randomAudit(t, location, 1500)
		if _, err := db.VerifyAudit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := db.SplitBlocks(t.Context()); n == 0 {
			t.Error("no block has the calls that failed in a part of their own")
		}
		all := audit.MergeOutcomes(recordsOf(t, db))
		for _, f := range []store.AuditFilter{
			{Failed: true}, {Server: "server-3"}, {Server: "second"}, {Caller: "caller-5"}, {Caller: "editor caller-7"},
			{Server: "server-1", Failed: true}, {Server: "none"}, {Caller: "editor", Failed: true},
			{Since: all[len(all)/2].At, Failed: true}, {Since: all[len(all)/2].At, Server: "second"},
		} {
			pick := func(records []audit.Record) (some []audit.Record) {
				for _, r := range records {
					if r.Kind != audit.Done && !r.At.Before(f.Since) && (f.Server == "" || r.Server == f.Server) &&
						(!f.Failed || r.Outcome.Failed()) && (f.Caller == "" || r.Caller.Principal == f.Caller ||
						strings.HasPrefix(r.Caller.Client, f.Caller)) {
						some = append(some, r)
					}
				}
				slices.SortFunc(some, func(a, b audit.Record) int { return strings.Compare(a.ID, b.ID) })
				return some
			}
			found, err := db.FindAudit(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			want := pick(all)
			got := pick(found)
			for i := range min(len(got), len(want)) {
				if diff := cmp.Diff(want[i], got[i]); diff != "" {
					t.Errorf("%+v: %s", f, diff)
					break
				}
			}
			if len(got) != len(want) {
				t.Errorf("%+v: %d found, %d wanted", f, len(got), len(want))
			}
			if f.Server != "none" && len(want) == 0 {
				t.Errorf("%+v finds nothing", f)
			}
		}
	})
}

// TestChainsKnowEachOther has two chains, as two processes on one database make them, and cuts the end of one off.
func TestChainsKnowEachOther(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		key := newKey(t)
		db := open(t, location)
		zero := db.NewAuditWriter(t.TempDir(), store.AuditOptions{})
		record(t, zero, "zero")
		check(t, zero.Close(t.Context()))
		raw(t, location)("INSERT INTO heads (stream, seq, hash) VALUES ('audit-b', 0, $1)", make([]byte, 32))
		o := store.AuditOptions{Key: func(context.Context) (ed25519.PrivateKey, error) { return key, nil }}
		first, second := db.NewAuditWriter(t.TempDir(), o), db.NewAuditWriter(t.TempDir(), o)
		first.PreferChain("audit")
		second.PreferChain("audit-b")
		for n := range 200 {
			record(t, first, fmt.Sprint("a", n))
			record(t, second, fmt.Sprint("b", n))
			if n%50 == 0 {
				check(t, first.Drain(t.Context()))
				check(t, second.Drain(t.Context()))
			}
		}
		check(t, second.Close(t.Context()))
		check(t, first.Close(t.Context()))
		report, all := auditOf(t, db)
		if len(all) != 401 || len(report.Others) != 1 || report.Others[0].Stream != "audit-b" || report.Signed == 0 ||
			report.Others[0].Signed == 0 || report.Records+report.Others[0].Records < 800+8 {
			t.Errorf("%d calls, %+v", len(all), report)
		}
		var last time.Time
		for r, err := range db.AuditRecords(t.Context(), time.Time{}) {
			if err != nil || r.At.Before(last) {
				t.Fatalf("%v after %v: %v", r.At, last, err)
			}
			last = r.At
		}
		// Somebody cuts the end of a chain off, with its head and its checkpoints.
		raw(t, location)("DELETE FROM audit_blocks WHERE stream = 'audit-b' AND first > 202")
		raw(t, location)("DELETE FROM checkpoints WHERE stream = 'audit-b' AND seq > 202")
		raw(t, location)("UPDATE heads SET (seq, hash) = (SELECT last, hash FROM audit_blocks WHERE stream = 'audit-b' " +
			"ORDER BY last DESC LIMIT 1) WHERE stream = 'audit-b'")
		if _, err := db.VerifyAudit(t.Context()); err == nil || !strings.Contains(err.Error(), " of audit-b: missing") {
			t.Errorf("the end of a chain is cut off: %v", err)
		}
		raw(t, location)("DELETE FROM audit_blocks WHERE stream = 'audit-b'")
		raw(t, location)("DELETE FROM heads WHERE stream = 'audit-b'")
		if _, err := db.VerifyAudit(t.Context()); err == nil || !strings.Contains(err.Error(), " of audit-b: missing") {
			t.Errorf("a chain is cut off: %v", err)
		}
	})
}

// TestWritersDoNotWaitForEachOther has a writer find the chain locked by another process, which does not go on.
func TestWritersDoNotWaitForEachOther(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		if !strings.HasPrefix(location, "postgres") {
			t.Skip("SQLite has one writer at a time")
		}
		db := open(t, location)
		a := db.NewAuditWriter(t.TempDir(), store.AuditOptions{})
		record(t, a, "1")
		check(t, a.Drain(t.Context()))
		tx, err := db.LockedChain(t.Context())
		check(t, err)
		record(t, a, "2")
		check(t, a.Drain(t.Context()))
		check(t, tx.Rollback())
		record(t, a, "3")
		check(t, a.Close(t.Context()))
		report, all := auditOf(t, db)
		if len(report.Others) != 1 || all["2"].Outcome != audit.OK || all["3"].Outcome != audit.OK {
			t.Errorf("%+v, %v", report, all)
		}
	})
}

// oldRecords are the records of calls as earlier releases stored them.
func oldRecords(calls int, from time.Time) (all []ledger.Record) {
	rules := new(audit.RedactionRules)
	for n := range calls {
		call, done := aCall(from.Add(time.Duration(n)*time.Millisecond), "fs", "ada", audit.OK)
		for _, r := range []audit.Record{call, done} {
			all = append(all, ledger.Record{Stream: store.AuditStream, Kind: string(r.Kind), Key: r.ID, Body: rules.AppendRecord(nil, &r)})
		}
	}
	return all
}

// TestOldRecordsArePacked has a store with the records of an earlier release, which are packed while others are
// written: at each moment all records are there, in their order and with their hashes.
func TestOldRecordsArePacked(t *testing.T) {
	onEach(t, func(t *testing.T, location string) {
		db := open(t, location)
		from := time.Now().Add(-time.Hour)
		old := oldRecords(3500, from)
		for part := range slices.Chunk(old, 1000) {
			check(t, db.StoreUnpacked(t.Context(), part))
		}
		a := db.NewAuditWriter(t.TempDir(), store.AuditOptions{})
		all := func() (hashes []string) {
			for r, err := range db.AuditRecords(t.Context(), time.Time{}) {
				check(t, err)
				hashes = append(hashes, fmt.Sprintf("%d %s %x", r.Seq, r.Key, r.Hash))
			}
			return hashes
		}
		before := all()
		for round := 0; ; round++ {
			record(t, a, fmt.Sprint("new", round))
			check(t, a.Drain(t.Context()))
			n, err := db.PackSome(t.Context())
			check(t, err)
			now := all()
			if len(now) != len(old)+2*(round+1) || !slices.Equal(now[:len(before)], before) {
				t.Fatalf("round %d: %d records", round, len(now))
			}
			if report, err := db.VerifyAudit(t.Context()); err != nil || report.Records != uint64(len(now)) {
				t.Fatalf("round %d: %+v, %v", round, report, err)
			}
			if stored, err := db.AuditRecordsOfCall(t.Context(), old[3000].Key); err != nil || len(stored) != 2 {
				t.Errorf("round %d: %v, %v", round, stored, err)
			}
			if found, err := db.FindAudit(t.Context(), store.AuditFilter{Server: "fs"}); err != nil || len(found) < 3500 {
				t.Errorf("round %d: %d are found, %v", round, len(found), err)
			}
			if n == 0 {
				break
			}
		}
		if n, err := db.UnpackedAudit(t.Context()); err != nil || n != 0 {
			t.Errorf("%d records are left, %v", n, err)
		}
		check(t, a.Close(t.Context()))
		// The size of the blocks is counted, so that they are removed.
		b := db.NewAuditWriter(t.TempDir(), store.AuditOptions{KeepRecords: 2000})
		record(t, b, "last")
		check(t, b.Close(t.Context()))
		if report, err := db.VerifyAudit(t.Context()); err != nil || report.Records < 2000 || report.Records > 2600 {
			t.Errorf("%+v, %v", report, err)
		}
	})
}

// TestOldRecordsThatWereEdited edits records of an earlier release, before and after they are packed.
func TestOldRecordsThatWereEdited(t *testing.T) {
	for name, tt := range map[string]struct{ statement, want string }{
		"edited":  {"UPDATE audit SET key = 'x' WHERE seq = 700", "record 700 of audit: edited"},
		"missing": {"DELETE FROM audit WHERE seq = 700", "record 700 of audit: missing"},
		"torn":    {"UPDATE audit SET hash = x'01' WHERE seq = 700", "record 700 of audit: torn"},
		"last":    {"DELETE FROM audit WHERE seq > 1990", "record 1991 of audit: missing"},
	} {
		t.Run(name, func(t *testing.T) {
			location := filepath.Join(t.TempDir(), "store.db")
			db := open(t, location)
			check(t, db.StoreUnpacked(t.Context(), oldRecords(1000, time.Now())))
			raw(t, location)(tt.statement)
			for range 2 {
				if _, err := db.VerifyAudit(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %s", err, tt.want)
				}
				if err := db.PackAudit(t.Context(), func(int64) {}); (err != nil) != (name == "torn") {
					t.Errorf("pack: %v", err)
				}
			}
		})
	}
}

// TestPackingEnds has packing end between two parts.
func TestPackingEnds(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "store.db"))
	check(t, db.StoreUnpacked(t.Context(), oldRecords(3000, time.Now())))
	ctx, stop := context.WithCancel(t.Context())
	if err := db.PackAudit(ctx, func(int64) { stop() }); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	left, err := db.UnpackedAudit(t.Context())
	if err != nil || left == 0 || left == 6000 {
		t.Errorf("%d are left, %v", left, err)
	}
	check(t, db.PackAudit(t.Context(), func(int64) {}))
	if report, err := db.VerifyAudit(t.Context()); err != nil || report.Records != 6000 {
		t.Errorf("%+v, %v", report, err)
	}
}
