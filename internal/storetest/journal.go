package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/ledger"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// NewEnrolment returns a ledger entry that enrols a tool of a server. It has no position and no time: the journal
// sets both when the entry is appended.
func NewEnrolment(server drawbridge.ServerID, tool string) ledger.Entry {
	card := ledger.EnrolledCard{
		Server: server, Tool: tool, ConfigHash: "r0w",
		Definition: json.RawMessage(
			fmt.Sprintf(`{"name" : %q, "inputSchema":{"type":"object", "maximum":9007199254740993}}`, tool)),
	}
	return ledger.Entry{Op: ledger.OpEnrol, Key: card.Key(), Server: server, Card: &card}
}

// newEnrolments returns n ledger entries that enrol n tools of a server.
func newEnrolments(server drawbridge.ServerID, n int) []ledger.Entry {
	var entries []ledger.Entry
	for i := range n {
		entries = append(entries, NewEnrolment(server, fmt.Sprintf("tool_%d", i)))
	}
	return entries
}

func mustAppend(t *testing.T, s TestedStore, stream string, entries ...ledger.Entry) []ledger.Entry {
	t.Helper()
	stored, err := s.Append(t.Context(), stream, entries)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func mustReplay(t *testing.T, s TestedStore, stream string) []ledger.Entry {
	t.Helper()
	entries, err := s.Replay(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// verifyChain tests that the hash chain of a stream is valid, and that its records have the positions 1 to n.
func verifyChain(t *testing.T, s TestedStore, stream string, n int) {
	t.Helper()
	if err := ledger.VerifyChains(s.LedgerRecords(t.Context(), stream)); err != nil {
		t.Errorf("verify %s: %v", stream, err)
	}
	count := uint64(0)
	for r, err := range s.LedgerRecords(t.Context(), stream) {
		if err != nil {
			t.Fatal(err)
		}
		if count++; r.Seq != count || r.Stream != stream {
			t.Fatalf("record %d of %s is %d of %s", count, stream, r.Seq, r.Stream)
		}
	}
	if count != uint64(n) {
		t.Errorf("%s has %d records, want %d", stream, count, n)
	}
}

func testAppendAndReplay(t *testing.T, p OpenStore) {
	s := p()
	if got := mustReplay(t, s, "deck"); len(got) != 0 {
		t.Errorf("an empty journal replays %v", got)
	}
	if got := mustAppend(t, s, "deck"); got != nil {
		t.Errorf("appending nothing gave %v", got)
	}
	verifyChain(t, s, "deck", 0)

	entries := []ledger.Entry{NewEnrolment("fs", "read"), NewEnrolment("fs", "wrïte\n<&>"),
		{Op: ledger.OpRetire, Key: "bk_gone", Server: "git"}}
	entries[1].Card.Definition = json.RawMessage("{ \"a\":1.00,\n\"b\":\"\\u003c<\u2028\", \"c\":[1e400, {}] }")
	given := slices.Clone(entries)
	before := time.Now().Add(-time.Minute)
	stored := mustAppend(t, s, "deck", entries[:2]...)
	stored = append(stored, mustAppend(t, s, "deck", entries[2])...)
	if !cmp.Equal(given, entries) {
		t.Error("Append changed the caller's entries")
	}
	// The stored entries are equal to the given ones except for position and time.
	if diff := cmp.Diff(entries, stored, cmpopts.IgnoreFields(ledger.Entry{}, "Seq", "At")); diff != "" {
		t.Error(diff)
	}
	for i, e := range stored {
		if e.Seq != uint64(i+1) || e.At.Before(before) || e.At.After(time.Now().Add(time.Minute)) ||
			e.At.Location() != time.UTC {
			t.Errorf("entry %d has place %d and time %s", i+1, e.Seq, e.At)
		}
	}
	for _, s := range []TestedStore{s, p()} {
		if diff := cmp.Diff(stored, mustReplay(t, s, "deck")); diff != "" {
			t.Error("the replay is something else:", diff)
		}
		verifyChain(t, s, "deck", 3)
	}
}

func testAppendIsWholeOrNothing(t *testing.T, p OpenStore) {
	s := p()
	mustAppend(t, s, "deck", NewEnrolment("fs", "read"))
	bad := newEnrolments("fs", 3)
	bad[2].Card.Definition = json.RawMessage(`{"password":"hunter2"`)
	_, err := s.Append(t.Context(), "deck", bad)
	f, ok := errors.AsType[*drawbridge.Fault](err)
	if !ok || f.Code != drawbridge.InvalidInput || f.Kind != drawbridge.Backend || f.Ambiguous {
		t.Errorf("error %#v, want a fault of the backend, InvalidInput", err)
	}
	if want := "its definition is not JSON"; err == nil || f.Err == nil || !strings.Contains(err.Error(), want) ||
		strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error %v; want %q and nothing of the definition", err, want)
	}
	verifyChain(t, s, "deck", 1)
}

// testLargeBatch tests appending batches that need more than one statement, and reading streams that need more than
// one page. It includes batches and pages of exactly the maximum size.
func testLargeBatch(t *testing.T, p OpenStore) {
	s := p()
	total := 0
	for _, n := range []int{1, 99, 100, 56, 256, 512} {
		stored := mustAppend(t, s, "deck", newEnrolments("fs", n)...)
		if first, last := stored[0].Seq, stored[n-1].Seq; first != uint64(total+1) || last != uint64(total+n) {
			t.Fatalf("a batch of %d after %d got the places %d to %d", n, total, first, last)
		}
		total += n
		if n < 512 {
			verifyChain(t, s, "deck", total)
		}
	}
	verifyChain(t, s, "deck", total)
	if got := mustReplay(t, s, "deck"); len(got) != total || got[total-1].Card.Tool != "tool_511" {
		t.Errorf("%d entries replayed, want %d", len(got), total)
	}
}

func testTwoWriters(t *testing.T, p OpenStore) {
	const writers, rounds = 4, 25
	var wg sync.WaitGroup
	seen := make([][]ledger.Entry, writers)
	for w := range writers {
		s := p()
		wg.Go(func() {
			for i := range rounds {
				stored, err := s.Append(t.Context(), "deck",
					newEnrolments(drawbridge.ServerID(fmt.Sprintf("s%d", w)), 1+i%3))
				if err != nil {
					t.Error(err)
					return
				}
				seen[w] = append(seen[w], stored...)
			}
		})
	}
	wg.Wait()
	s := p()
	all := slices.Concat(seen...)
	verifyChain(t, s, "deck", len(all))
	slices.SortFunc(all, func(a, b ledger.Entry) int { return int(a.Seq) - int(b.Seq) })
	if diff := cmp.Diff(all, mustReplay(t, s, "deck")); diff != "" {
		t.Error("what the writers were told is not what is there:", diff)
	}
}

func testRecordsWhileAppending(t *testing.T, p OpenStore) {
	s := p()
	mustAppend(t, s, "deck", newEnrolments("fs", 300)...)
	n := 0
	err := ledger.VerifyChains(func(yield func(ledger.Record, error) bool) {
		for r, err := range s.LedgerRecords(t.Context(), "deck") {
			if n++; n%100 == 0 && n <= 400 {
				mustAppend(t, s, "deck", NewEnrolment("fs", fmt.Sprint("late", n)))
			}
			if !yield(r, err) {
				return
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
	if n < 300 || n > 304 {
		t.Errorf("%d records read, of 300 to 304", n)
	}
	for range s.LedgerRecords(t.Context(), "deck") {
		break // the loop must release its database resources, or else the next call blocks
	}
	verifyChain(t, s, "deck", 303)
}

func testStreams(t *testing.T, p OpenStore) {
	s := p()
	for _, stream := range []string{"deck:b", "deck", "Deck", "deck:a", "", "deck"} {
		mustAppend(t, s, stream, NewEnrolment("fs", "read"))
	}
	streams, err := s.LedgerStreams(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"", "Deck", "deck", "deck:a", "deck:b"}, streams); diff != "" {
		t.Error(diff)
	}
	verifyChain(t, s, "deck", 2)
	verifyChain(t, s, "deck:a", 1)
}

func testLedgerOutlivesTheProcess(t *testing.T, p OpenStore) {
	s := p()
	record := func(l ledger.Ledger, entries ...ledger.Entry) ledger.Ledger {
		return l.Append(mustAppend(t, s, "deck", entries...)...)
	}
	l := record(ledger.Empty(), newEnrolments("fs", 5)...)
	l = record(l, newEnrolments("git", 3)...)
	_, gone := l.RetireServer("git", time.Time{})
	l = record(l, gone...)
	l = record(l, NewEnrolment("git", "tool_1"), NewEnrolment("fs", "tool_0"))

	again := ledger.FromLog(mustReplay(t, p(), "deck"))
	if diff := cmp.Diff(l.Live(), again.Live()); diff != "" {
		t.Error("what is live after a replay is something else:", diff)
	}
	if diff := cmp.Diff(l.Entries(), again.Entries()); diff != "" {
		t.Error("the log after a replay is another:", diff)
	}
	middle := again.Entries()[7].At
	if diff := cmp.Diff(l.SnapshotAt(middle).Live(), again.SnapshotAt(middle).Live()); diff != "" {
		t.Error("what was live then is something else:", diff)
	}
}

func testCancelled(t *testing.T, p OpenStore) {
	s := p()
	mustAppend(t, s, "deck", NewEnrolment("fs", "read"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Append(ctx, "deck", newEnrolments("fs", 2))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("append: %v, want %v", err, context.Canceled)
	}
	if _, err := s.Replay(ctx, "deck"); !errors.Is(err, context.Canceled) {
		t.Errorf("replay: %v, want %v", err, context.Canceled)
	}
	verifyChain(t, s, "deck", 1)
	mustAppend(t, s, "deck", NewEnrolment("fs", "write"))
	verifyChain(t, s, "deck", 2)
}

func testClosed(t *testing.T, p OpenStore) {
	s := p()
	mustAppend(t, s, "deck", NewEnrolment("fs", "read"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := s.Append(t.Context(), "deck", newEnrolments("fs", 1))
	if _, ok := errors.AsType[*drawbridge.Fault](err); !ok {
		t.Errorf("append after Close: %v, want a fault", err)
	}
	if err := s.Close(); err != nil {
		t.Error("a second Close:", err)
	}
}
