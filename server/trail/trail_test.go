package trail

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drawbridge-mcp/drawbridge/wire"
	"github.com/google/go-cmp/cmp"
)

// newTrails makes the streams of a session that has no connection: all that is said is kept, or forgotten.
func newTrails(total *atomic.Int64) *Trails {
	return &Trails{session: "s", total: total}
}

// away begins a stream whose connection is lost at once.
func (k *Trails) away() *Trail {
	out := NewOutbox()
	t := k.Open(out)
	t.Lost(out)
	return t
}

// left reads what would be said to a client that comes back.
func (k *Trails) left(t testing.TB, trail int) (data []string) {
	t.Helper()
	stream, out := k.Resume(Position{trail, -1})
	if out == nil {
		return nil
	}
	batch, _ := out.take()
	stream.Lost(out)
	r := wire.NewEventReader(strings.NewReader(string(batch)), 0)
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
	const part = maxKept / 8
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
	say := func(to *Trail, name string, must bool) {
		t.Helper()
		if err := to.Say(text(name), must); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b"} {
		say(one, name, true)
	}
	out := NewOutbox()
	three := k.Open(out)
	say(three, "written", true)
	three.End()
	if !three.Wrote(out) {
		t.Error("the stream is not over")
	}
	for _, name := range []string{"1", "2", "3", "4"} { // eight parts are just too much
		say(two, name, false)
	}
	say(two, "5", false)
	if k.all[3] != nil {
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
	if int64(k.size) != total.Load() || k.size > maxKept {
		t.Errorf("%d bytes are kept, %d in all", k.size, total.Load())
	}
	k.Close()
	if k.size != 0 || total.Load() != 0 || k.kept != nil {
		t.Errorf("%d bytes are kept at the end, %d in all", k.size, total.Load())
	}
}

// TestKeptEvents: the number of events is bounded too, and so are the bytes of all sessions.
func TestKeptEvents(t *testing.T) {
	var total atomic.Int64
	k := newTrails(&total)
	one := k.away()
	for range 2 * maxKeptEvents {
		_ = one.Say([]byte(`{}`), true)
	}
	if len(k.kept) != maxKeptEvents || one.kept != maxKeptEvents {
		t.Errorf("%d events are kept", len(k.kept))
	}
	others := int64(maxKeptAll) - total.Load()
	total.Add(others)
	_ = one.Say([]byte(`{"x":1}`), true)
	if got := total.Load(); got > maxKeptAll {
		t.Errorf("%d bytes are kept in all", got)
	}
	k.Close()
	if got := total.Load(); got != others {
		t.Errorf("%d bytes are kept in all, want those of the others, %d", got, others)
	}
}

// TestKeptTooLarge: of an answer that is too large an error is kept, so that the call does not end in silence.
func TestKeptTooLarge(t *testing.T) {
	var total atomic.Int64
	k := newTrails(&total)
	one := k.away()
	_ = one.Say([]byte(`{"jsonrpc":"2.0","id":"x","result":"`+strings.Repeat("x", maxKept)+`"}`), true)
	_ = one.Say([]byte(`{"jsonrpc":"2.0","id":1,"method":"roots/list","params":"`+strings.Repeat("x", maxKept)+`"}`), true)
	one.End()
	want := []string{`{"jsonrpc":"2.0","id":"x","error":{"code":-32603,"message":"The answer was too large to be kept for a client that lost its connection"}}`}
	if diff := cmp.Diff(want, k.left(t, 1)); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

// TestKeptForATime: what was written, or need not arrive, is forgotten after some time; an answer that was not written is
// kept.
func TestKeptForATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var total atomic.Int64
		k := newTrails(&total)
		away := k.away()
		_ = away.Say([]byte(`{"progress":1}`), false)
		_ = away.Say([]byte(`{"answer":1}`), true)
		away.End()
		out := NewOutbox()
		there := k.Open(out)
		_ = there.Say([]byte(`{"answer":2}`), true)
		there.End()
		there.Wrote(out)
		<-time.After(keepTime / 2)
		k.Sweep(time.Now())
		if len(k.kept) != 3 {
			t.Errorf("%d events are kept for a while", len(k.kept))
		}
		<-time.After(keepTime)
		k.Sweep(time.Now())
		if len(k.all) != 1 {
			t.Errorf("%d streams are kept", len(k.all))
		}
		if diff := cmp.Diff([]string{`{"answer":1}`}, k.left(t, 1)); diff != "" {
			t.Errorf("kept (-want +got):\n%s", diff)
		}
	})
}
