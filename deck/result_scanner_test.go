package deck

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/google/go-cmp/cmp"
)

// A scanBook keeps what a scanner records.
type scanBook struct {
	mu      sync.Mutex
	err     error
	counts  map[drawbridge.ServerID]ScanCounts
	flagged map[drawbridge.ServerID][]FlaggedResult
}

func newScanBook() *scanBook {
	return &scanBook{counts: map[drawbridge.ServerID]ScanCounts{}, flagged: map[drawbridge.ServerID][]FlaggedResult{}}
}

func (b *scanBook) RecordScans(_ context.Context, server drawbridge.ServerID, n ScanCounts,
	flagged []FlaggedResult) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.counts[server]
	b.counts[server] = ScanCounts{c.Scanned + n.Scanned, c.Flagged + n.Flagged, c.Skipped + n.Skipped}
	b.flagged[server] = append(b.flagged[server], flagged...)
	return b.err
}

// countsOf returns the counts of a server so far.
func (b *scanBook) countsOf(server drawbridge.ServerID) ScanCounts {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts[server]
}

// obeyFinder finds "now obey".
func obeyFinder(text string) (string, []string) {
	if strings.Contains(text, "panic now") {
		panic(text)
	}
	if strings.Contains(text, "now obey") {
		return "obey", []string{"override"}
	}
	return "", nil
}

func newTestScanner(b *scanBook) *ResultScanner {
	return NewResultScanner(obeyFinder, b, slog.New(slog.DiscardHandler))
}

// scanGuard returns a guard with a scanner.
func scanGuard(s *ResultScanner) *ResultGuard {
	return &ResultGuard{MarkFor: func(drawbridge.Caller) bool { return false }, Scanner: s,
		Log: slog.New(slog.DiscardHandler), RecordAction: func(drawbridge.ServerID, string, string, string) {}}
}

func textResult(text string) json.RawMessage {
	return json.RawMessage(`{"content":[{"type":"text","text":"` + text + `"}]}`)
}

// passOn passes a result of a server on, which must not change it.
func passOn(t *testing.T, g *ResultGuard, server drawbridge.ServerID, method, tool string, result json.RawMessage) {
	t.Helper()
	call := drawbridge.Call{Method: method, Caller: drawbridge.Caller{Principal: "ada"}}
	f := g.FilterFor(call, server, string(server)+"__"+tool, tool, ResultTreatment{Scan: true})
	out, err := f.Apply(t.Context(), result)
	if err != nil || string(out) != string(result) {
		t.Errorf("%s: %v", out, err)
	}
}

// TestScannerFindsAllThatIsHeld passes on what would be held back, at each place of a result. Everything is found, and
// nothing else.
func TestScannerFindsAllThatIsHeld(t *testing.T) {
	for _, tt := range heldWhereverItStandsCases {
		b := newScanBook()
		s := newTestScanner(b)
		passOn(t, scanGuard(s), "s", tt.method, tt.tool, json.RawMessage(tt.result))
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		want := ScanCounts{Scanned: 1}
		var flagged []FlaggedResult
		if tt.held {
			want.Flagged = 1
			flagged = []FlaggedResult{{Principal: "ada", Card: "s__" + tt.tool, Tool: tt.tool, Method: tt.method,
				Rules: []string{"override"}, Excerpt: "obey"}}
		}
		if diff := cmp.Diff(want, b.counts["s"]) + cmp.Diff(flagged, b.flagged["s"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestScannerRuns has results examined soon after they were passed on, and counters recorded later.
func TestScannerRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newScanBook()
		s := newTestScanner(b)
		g := scanGuard(s)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		passOn(t, g, "s", mcp.MethodToolsCall, "x", textResult("now obey"))
		synctest.Wait()
		if b.countsOf("s") != (ScanCounts{}) {
			t.Error("it is examined before it is passed on")
		}
		<-time.After(scanDelay)
		synctest.Wait()
		if b.countsOf("s") != (ScanCounts{Scanned: 1, Flagged: 1}) {
			t.Errorf("after the delay: %+v", b.countsOf("s"))
		}
		passOn(t, g, "s", mcp.MethodToolsCall, "x", textResult("fine"))
		passOn(t, g, "s", mcp.MethodToolsCall, "x", textResult("fine"))
		<-time.After(countInterval + scanDelay)
		synctest.Wait()
		if b.countsOf("s") != (ScanCounts{Scanned: 3, Flagged: 1}) {
			t.Errorf("after the interval: %+v", b.countsOf("s"))
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestScannerQueueIsFull has one server send more than it may have in the queue. The rest is counted, and other servers
// still have room.
func TestScannerQueueIsFull(t *testing.T) {
	b := newScanBook()
	s := newTestScanner(b)
	g := scanGuard(s)
	for range maxWaitingResults {
		passOn(t, g, "loud", mcp.MethodToolsCall, "x", textResult("fine"))
	}
	passOn(t, g, "large", mcp.MethodToolsCall, "x", textResult(strings.Repeat("a", maxWaitingBytes/2)))
	passOn(t, g, "other", mcp.MethodToolsCall, "x", textResult("now obey"))
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	want := map[drawbridge.ServerID]ScanCounts{
		"loud":  {Scanned: maxWaitingResults / 2, Skipped: maxWaitingResults / 2},
		"large": {Skipped: 1},
		"other": {Scanned: 1, Flagged: 1},
	}
	if diff := cmp.Diff(want, b.counts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s.bytes != 0 || len(s.loads) != 0 {
		t.Errorf("%d bytes and %d servers are left", s.bytes, len(s.loads))
	}
}

// TestScannerCloseInTime closes a scanner without time: what waits is counted, and so are later results.
func TestScannerCloseInTime(t *testing.T) {
	b := newScanBook()
	s := newTestScanner(b)
	g := scanGuard(s)
	passOn(t, g, "s", mcp.MethodToolsCall, "x", textResult("now obey"))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Close(over); err != nil {
		t.Error(err)
	}
	passOn(t, g, "s", mcp.MethodToolsCall, "x", textResult("now obey"))
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if b.counts["s"] != (ScanCounts{Skipped: 2}) || len(b.flagged["s"]) != 0 {
		t.Errorf("%+v", b)
	}
}

// TestScannerOfErrorsAndFences has rules that the fence recorded already marked so, and errors examined.
func TestScannerOfErrorsAndFences(t *testing.T) {
	b := newScanBook()
	s := newTestScanner(b)
	g := scanGuard(s)
	g.Inspect = func(text string) (string, []string) {
		_, rules := obeyFinder(text)
		return text, rules
	}
	yes := true
	fenced := g.FilterFor(drawbridge.Call{Method: mcp.MethodToolsCall}, "s", "s__x", "x",
		ResultTreatment{Mark: &yes, Scan: true})
	for _, result := range []json.RawMessage{textResult("now obey"),
		json.RawMessage(`{"structuredContent":{"a":"now obey"}}`)} {
		if _, err := fenced.Apply(t.Context(), result); err != nil {
			t.Error(err)
		}
	}
	was := &drawbridge.Fault{Code: drawbridge.ServerError, Raw: json.RawMessage(`{"code":1,"message":"now obey"}`)}
	plain := g.FilterFor(drawbridge.Call{Method: mcp.MethodToolsCall}, "s", "s__x", "x", ResultTreatment{Scan: true})
	if err := plain.ApplyToError(t.Context(), was); err != error(was) {
		t.Error(err)
	}
	passOn(t, g, "s", mcp.MethodToolsCall, "x", textResult("panic now"))
	held := g.FilterFor(drawbridge.Call{Method: mcp.MethodToolsCall}, "s", "s__x", "x",
		ResultTreatment{Hold: true, Scan: true})
	if _, err := held.Apply(t.Context(), textResult("now obey")); err == nil {
		t.Error("it is not held back")
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	var recorded []bool
	for _, r := range b.flagged["s"] {
		recorded = append(recorded, r.Recorded)
	}
	if diff := cmp.Diff([]bool{true, false, false}, recorded); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	if b.counts["s"] != (ScanCounts{Scanned: 3, Flagged: 3, Skipped: 1}) {
		t.Errorf("%+v", b.counts)
	}
}
