package server

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/google/go-cmp/cmp"
)

// newTrails makes the streams of a session that has no connection: all that is said is kept, or forgotten.
func newTrails(total *atomic.Int64) *eventLog {
	return &eventLog{session: "s", total: total}
}

// away begins a stream whose connection is lost at once.
func (k *eventLog) away() *eventStream {
	out := newOutbox()
	t := k.openStream(out)
	t.connectionLost(out)
	return t
}

// left reads what would be said to a client that comes back.
func (k *eventLog) left(t testing.TB, trail int) (data []string) {
	t.Helper()
	stream, out := k.resumeStream(eventPosition{trail, -1})
	if out == nil {
		return nil
	}
	batch, _ := out.takeWaiting()
	stream.connectionLost(out)
	r := mcp.NewSSEReader(strings.NewReader(string(batch)), 0)
	for {
		e, err := r.Next()
		if err != nil {
			return data
		}
		data = append(data, string(e.Data))
	}
}

// TestKept shows what is forgotten where there would be too much: what was written, then what need not arrive, then the
// rest, each the oldest first.
func TestKept(t *testing.T) {
	const part = maxKeptBytes / 8
	text := func(name string) []byte { return []byte(name + strings.Repeat(" ", part)) }
	names := func(data []string) (names []string) {
		for _, d := range data {
			names = append(names, strings.TrimSpace(d))
		}
		return names
	}
	var total atomic.Int64
	k := newTrails(&total)
	one, two := k.away(), k.away()
	say := func(to *eventStream, name string, must bool) {
		t.Helper()
		if err := to.send(text(name), must); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b"} {
		say(one, name, true)
	}
	out := newOutbox()
	three := k.openStream(out)
	say(three, "written", true)
	three.end()
	if !three.outboxWritten(out) {
		t.Error("the stream is not over")
	}
	for _, name := range []string{"1", "2", "3", "4"} { // eight parts are just too much
		say(two, name, false)
	}
	say(two, "5", false)
	if k.streams[3] != nil {
		t.Error("what was written is kept, and its stream known")
	}
	say(one, "c", true)
	say(one, "d", true)
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, names(k.left(t, 1))); diff != "" {
		t.Errorf("of the first stream is kept (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"3", "4", "5"}, names(k.left(t, 2))); diff != "" {
		t.Errorf("of the second stream is kept (-want +got):\n%s", diff)
	}
	for _, name := range []string{"e", "f", "g", "h"} {
		say(one, name, true)
	}
	if diff := cmp.Diff([]string{"b", "c", "d", "e", "f", "g", "h"}, names(k.left(t, 1))); diff != "" {
		t.Errorf("of the first stream is kept (-want +got):\n%s", diff)
	}
	if int64(k.eventBytes) != total.Load() || k.eventBytes > maxKeptBytes {
		t.Errorf("%d bytes are kept, %d in all", k.eventBytes, total.Load())
	}
	k.close()
	if k.eventBytes != 0 || total.Load() != 0 || k.events != nil {
		t.Errorf("%d bytes are kept at the end, %d in all", k.eventBytes, total.Load())
	}
}

// TestKeptEvents: the number of events is bounded too, and so are the bytes of all sessions.
func TestKeptEvents(t *testing.T) {
	var total atomic.Int64
	k := newTrails(&total)
	one := k.away()
	for range 2 * maxKeptEvents {
		_ = one.send([]byte(`{}`), true)
	}
	if len(k.events) != maxKeptEvents || one.kept != maxKeptEvents {
		t.Errorf("%d events are kept", len(k.events))
	}
	others := int64(maxKeptBytesAll) - total.Load()
	total.Add(others)
	_ = one.send([]byte(`{"x":1}`), true)
	if got := total.Load(); got > maxKeptBytesAll {
		t.Errorf("%d bytes are kept in all", got)
	}
	k.close()
	if got := total.Load(); got != others {
		t.Errorf("%d bytes are kept in all, want those of the others, %d", got, others)
	}
}

// TestKeptTooLarge: of an answer that is too large an error is kept, so that the call does not end in silence.
func TestKeptTooLarge(t *testing.T) {
	var total atomic.Int64
	k := newTrails(&total)
	one := k.away()
	_ = one.send([]byte(`{"jsonrpc":"2.0","id":"x","result":"`+strings.Repeat("x", maxKeptBytes)+`"}`), true)
	_ = one.send([]byte(`{"jsonrpc":"2.0","id":1,"method":"roots/list","params":"`+
		strings.Repeat("x", maxKeptBytes)+`"}`), true)
	one.end()
	want := []string{`{"jsonrpc":"2.0","id":"x","error":{"code":-32603,"message":"The answer was too large to be kept for a client that lost its connection"}}`}
	if diff := cmp.Diff(want, k.left(t, 1)); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

// TestKeptForATime: what was written, or need not arrive, is forgotten after some time; an answer that was not written
// is kept.
func TestKeptForATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var total atomic.Int64
		k := newTrails(&total)
		away := k.away()
		_ = away.send([]byte(`{"progress":1}`), false)
		_ = away.send([]byte(`{"answer":1}`), true)
		away.end()
		out := newOutbox()
		there := k.openStream(out)
		_ = there.send([]byte(`{"answer":2}`), true)
		there.end()
		there.outboxWritten(out)
		<-time.After(eventRetention / 2)
		k.sweep(time.Now())
		if len(k.events) != 3 {
			t.Errorf("%d events are kept for a while", len(k.events))
		}
		<-time.After(eventRetention)
		k.sweep(time.Now())
		if len(k.streams) != 1 {
			t.Errorf("%d streams are kept", len(k.streams))
		}
		if diff := cmp.Diff([]string{`{"answer":1}`}, k.left(t, 1)); diff != "" {
			t.Errorf("kept (-want +got):\n%s", diff)
		}
	})
}
