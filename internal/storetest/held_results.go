package storetest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// HeldResults contains the methods of a store for results that matched rules of the shield and were not returned to
// the caller.
type HeldResults interface {
	HoldResult(ctx context.Context, r store.HeldResult) error
	HeldResults(ctx context.Context) ([]store.HeldResult, error)
	HeldResult(ctx context.Context, id string) (store.HeldResult, error)
}

func testHeldResults(t *testing.T, p OpenStore) {
	s, person := p(), p()
	one := store.HeldResult{
		ID: "one", Principal: "ada", Card: "fs__read", Method: "tools/call", Server: "fs",
		Rules:  []string{"override", "secret"},
		Result: json.RawMessage(`{"content":[{"type":"text","text":"é\u0000"}],"n":1.0}`),
	}
	requireNoError(t, s.HoldResult(t.Context(), one))
	got, err := person.HeldResult(t.Context(), "one")
	requireNoError(t, err)
	if diff := cmp.Diff(one, got, cmpopts.IgnoreFields(store.HeldResult{}, "At")); diff != "" || got.At.IsZero() {
		t.Errorf("held at %v (-want +got):\n%s", got.At, diff)
	}
	_, err = person.HeldResult(t.Context(), "two")
	wantFaultCode(t, err, drawbridge.NotFound)
	requireNoError(t, s.HoldResult(t.Context(), store.HeldResult{ID: "two", Result: json.RawMessage(`"` +
		strings.Repeat("x", 1<<20) + `"`)}))
	all, err := person.HeldResults(t.Context())
	requireNoError(t, err)
	if len(all) != 2 || all[0].Result != nil || all[1].At.After(all[0].At) {
		t.Errorf("held: %+v", all)
	}
}

// ResultScans contains the methods of a store for scans of results that were already returned to the caller when they
// were scanned.
type ResultScans interface {
	AddResultScan(ctx context.Context, server drawbridge.ServerID, more store.ResultScan) error
	ResultScans(ctx context.Context) (map[drawbridge.ServerID]store.ResultScan, error)
}

func testResultScans(t *testing.T, p OpenStore) {
	s, person := p(), p()
	one := store.FlaggedResult{CallID: "1", Principal: "ada", Card: "fs__read", Method: "tools/call",
		Rules: []string{"override"}, Excerpt: "obey \u00e9"}
	other := one
	other.CallID, other.Excerpt = "2", "other"
	for _, more := range []store.ResultScan{
		{Scanned: 3, Flagged: 1, Results: []store.FlaggedResult{one}},
		{Scanned: 2, Flagged: 2, Skipped: 1, Results: []store.FlaggedResult{other, one}},
	} {
		requireNoError(t, s.AddResultScan(t.Context(), "fs", more))
	}
	requireNoError(t, s.AddResultScan(t.Context(), "quiet", store.ResultScan{Scanned: 1}))
	all, err := person.ResultScans(t.Context())
	requireNoError(t, err)
	one.Times, other.Times = 2, 1
	want := map[drawbridge.ServerID]store.ResultScan{
		"fs":    {Scanned: 5, Flagged: 3, Skipped: 1, Results: []store.FlaggedResult{one, other}},
		"quiet": {Scanned: 1},
	}
	if diff := cmp.Diff(want, all, cmpopts.IgnoreFields(store.FlaggedResult{}, "ID", "First", "Last"),
		cmpopts.IgnoreFields(store.ResultScan{}, "Since")); diff != "" {
		t.Errorf("scans (-want +got):\n%s", diff)
	}
	if r := all["fs"].Results[0]; len(r.ID) != 8 || r.First.IsZero() || r.Last.Before(r.First) ||
		all["fs"].FlaggedTimes() != 3 {
		t.Errorf("scan: %+v", all["fs"])
	}
	for n := range 150 {
		one.Excerpt = strings.Repeat("x", n)
		requireNoError(t, s.AddResultScan(t.Context(), "loud", store.ResultScan{Results: []store.FlaggedResult{one}}))
	}
	all, err = person.ResultScans(t.Context())
	requireNoError(t, err)
	if kept := all["loud"].Results; len(kept) != 100 || len(kept[0].Excerpt) != 149 {
		t.Errorf("%d are kept", len(kept))
	}
}
