package storetest

import (
	"encoding/json"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mounts(t *testing.T, s TestedStore) map[string]store.MountRecord {
	t.Helper()
	all, err := s.Mounts(t.Context())
	requireNoError(t, err)
	return all
}

// ignoreTimes excludes the times of mounts from comparisons.
var ignoreTimes = cmpopts.IgnoreFields(store.MountRecord{}, "Attempted", "Listed")

func testMounts(t *testing.T, p OpenStore) {
	s := p()
	if got := mounts(t, s); len(got) != 0 {
		t.Errorf("an empty store remembers %v", got)
	}
	listing := drawbridge.Listing{
		Server: "fs", ConfigHash: "row-1", Era: drawbridge.Legacy | drawbridge.Modern, Instructions: "Read\nfirst",
		Tools:      []json.RawMessage{json.RawMessage(`{"name":"read"}`)},
		CacheHints: map[string]drawbridge.CacheHint{"tools/list": {TTL: time.Minute, Public: true}},
		ListedAt:   time.Date(2026, 7, 28, 14, 2, 0, 123456789, time.UTC),
	}
	status := drawbridge.ServerStatus{Server: "fs", Phase: drawbridge.Ready, Transport: "stdio", Era: "both", Cards: 1,
		Stderr: []string{"<up>"}}
	requireNoError(t, s.RecordAttempt(t.Context(), "row-1", "fs"))
	requireNoError(t, s.SaveListing(t.Context(), listing))
	requireNoError(t, s.SaveStatus(t.Context(), "row-1", status))
	requireNoError(t, s.RecordAttempt(t.Context(), "row-2", "dead"))
	requireNoError(t, s.SaveStatus(t.Context(), "row-3", drawbridge.ServerStatus{Server: "odd",
		Phase: drawbridge.Faulted, Fault: "exit status 1"}))

	want := map[string]store.MountRecord{
		"row-1": {Row: "row-1", Server: "fs", Listing: &listing, Status: &status, Owner: os.Getpid()},
		"row-2": {Row: "row-2", Server: "dead"},
		"row-3": {Row: "row-3", Server: "odd", Owner: os.Getpid(),
			Status: &drawbridge.ServerStatus{Server: "odd", Phase: drawbridge.Faulted, Fault: "exit status 1"}},
	}
	got := mounts(t, p())
	if diff := cmp.Diff(want, got, ignoreTimes); diff != "" {
		t.Error(diff)
	}
	some, err := s.MountsOf(t.Context(), []string{"row-3", "row-4", "row-1"})
	requireNoError(t, err)
	delete(want, "row-2")
	if diff := cmp.Diff(want, some, ignoreTimes); diff != "" {
		t.Error("of three rows:", diff)
	}
	if none, err := s.MountsOf(t.Context(), nil); err != nil || len(none) > 0 {
		t.Errorf("of no row: %v, %v", none, err)
	}
	zero := time.Time{}
	if m := got["row-2"]; m.Attempted == zero || m.Listed != zero {
		t.Errorf("a mount that was only attempted: attempted %s, listed %s", m.Attempted, m.Listed)
	}
	if m := got["row-3"]; m.Attempted != zero || m.Listed != zero {
		t.Errorf("a mount that was never attempted: attempted %s, listed %s", m.Attempted, m.Listed)
	}
	if m := got["row-1"]; time.Since(m.Listed).Abs() > time.Minute || m.Listed.Location() != time.UTC {
		t.Errorf("listed %s, and it is %s", m.Listed, time.Now())
	}

	// A new listing replaces the last one, and does not change the status.
	listing.Tools, listing.Server = nil, "renamed"
	requireNoError(t, s.SaveListing(t.Context(), listing))
	want["row-1"] = store.MountRecord{Row: "row-1", Server: "renamed", Listing: &listing, Status: &status,
		Owner: os.Getpid()}
	if diff := cmp.Diff(want["row-1"], mounts(t, s)["row-1"], ignoreTimes); diff != "" {
		t.Error(diff)
	}
}

func testListingIsKeptByteForByte(t *testing.T, p OpenStore) {
	s := p()
	odd := func(n string) json.RawMessage {
		return json.RawMessage("{ \"name\" : \"" + n +
			"\",\n\t\"<&>\":\"\\u003c\u2028é\", \"n\":[9007199254740993, 1.00, 1e400, null], \"\":{} }")
	}
	want := drawbridge.Listing{
		Server: "fs", ConfigHash: "row", Era: drawbridge.Modern, Info: odd("info"), Capabilities: odd("caps"),
		Instructions: "<é\u2028>\n",
		Tools:        []json.RawMessage{odd("a"), odd("b")}, Prompts: []json.RawMessage{odd("c")},
		Resources: []json.RawMessage{odd("d"), {}, odd("e")},
		Templates: []json.RawMessage{odd("f")}, ListedAt: time.Date(2026, 7, 28, 14, 2, 0, 1, time.UTC),
	}
	requireNoError(t, s.SaveListing(t.Context(), want))
	got := mounts(t, s)["row"].Listing
	if diff := cmp.Diff(&want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

// testAttemptEndsWithAListing tests that Attempted is after Listed once an attempt is recorded, and not after Listed
// once a listing is saved. This must be true even within the same millisecond.
func testAttemptEndsWithAListing(t *testing.T, p OpenStore) {
	s := p()
	for range 20 {
		requireNoError(t, s.RecordAttempt(t.Context(), "row", "fs"))
		if m := mounts(t, s)["row"]; !m.Attempted.After(m.Listed) {
			t.Fatalf("attempted %s, listed %s: the attempt counts as ended", m.Attempted, m.Listed)
		}
		requireNoError(t, s.SaveListing(t.Context(), drawbridge.Listing{Server: "fs", ConfigHash: "row"}))
		if m := mounts(t, s)["row"]; m.Attempted.After(m.Listed) {
			t.Fatalf("attempted %s, listed %s: the attempt counts as not ended", m.Attempted, m.Listed)
		}
	}
}

func testSecret(t *testing.T, p OpenStore) {
	const callers = 4
	var wg sync.WaitGroup
	secrets := make([][]byte, callers)
	for i := range callers {
		s := p()
		wg.Go(func() {
			var err error
			if secrets[i], err = s.SharedSecret(t.Context(), "state", 32); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s := p()
	for _, secret := range secrets {
		if len(secret) != 32 || !cmp.Equal(secret, secrets[0]) {
			t.Fatalf("one name gave %x and %x", secrets[0], secret)
		}
	}
	other, err := s.SharedSecret(t.Context(), "other", 16)
	requireNoError(t, err)
	if len(other) != 16 || cmp.Equal(other, secrets[0][:16]) {
		t.Errorf("another name gave %x", other)
	}
	for _, size := range []int{31, 0, -1} {
		_, err = s.SharedSecret(t.Context(), "state", size)
		if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || f.Code != drawbridge.InvalidInput {
			t.Errorf("a secret of size %d: %v, want a fault, InvalidInput", size, err)
		}
	}
}
