package mcp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/google/go-cmp/cmp"
)

// readEvents reads to the end. An event over the bound is named "(too long)", an end that is not orderly by its error.
func readEvents(r io.Reader, max int) []mcp.SSEEvent {
	events := mcp.NewSSEReader(r, max)
	var got []mcp.SSEEvent
	for {
		e, err := events.Next()
		switch {
		case errors.Is(err, mcp.ErrTooLong):
			got = append(got, mcp.SSEEvent{Name: "(too long)"})
		case err == io.EOF:
			return got
		case err != nil:
			return append(got, mcp.SSEEvent{Name: "(" + err.Error() + ")"})
		default:
			got = append(got, e)
		}
	}
}

// sameBytes compares data as a whole, which cmp would do byte by byte. Nil and empty differ.
var sameBytes = cmp.Comparer(func(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) })

// data is the event that has only data.
func data(s string) mcp.SSEEvent { return mcp.SSEEvent{Data: []byte(s), Retry: -1} }

func TestEventReader(t *testing.T) {
	long := strings.Repeat("x", 70_000)
	for _, tt := range []struct {
		name, text string
		max        int
		want       []mcp.SSEEvent
	}{
		{"a message", "event: message\ndata: {\"id\":1}\n\n", 0,
			[]mcp.SSEEvent{{Name: "message", Data: []byte(`{"id":1}`), Retry: -1}}},
		{"without the blank", "data:{\"id\":1}\n\n", 0, []mcp.SSEEvent{data(`{"id":1}`)}},
		{"one blank only is cut", "data:  x \n\n", 0, []mcp.SSEEvent{data(` x `)}},
		{"every field", "id: 7\nevent: e\nretry: 1500\ndata: x\n\n", 0,
			[]mcp.SSEEvent{{Name: "e", ID: "7", Data: []byte("x"), Retry: 1500 * time.Millisecond}}},
		{"data lines are joined", "data: a\ndata\ndata: b\n\n", 0, []mcp.SSEEvent{data("a\n\nb")}},
		{"CRLF", "data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n", 0, []mcp.SSEEvent{data("a\nb"), data("c")}},
		{"CR", "data: a\rdata: b\r\rdata: c\r\r", 0, []mcp.SSEEvent{data("a\nb"), data("c")}},
		{"all mixed", "data: a\r\n\ndata: b\n\r\ndata: c\r\n\r", 0, []mcp.SSEEvent{data("a"), data("b"), data("c")}},
		{"a byte order mark", "\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", 0, []mcp.SSEEvent{data("a")}},
		{"comments", ": hello\ndata: a\n: here\ndata: b\n\n:\n\n" + mcp.SSEComment, 0, []mcp.SSEEvent{data("a\nb")}},
		{"events that say nothing", "event: ping\n\ndata:\n\ndata: x\n\n\n\n", 0, []mcp.SSEEvent{data("x")}},
		{"an id alone makes a stream resumable", "id: s1\ndata:\n\n", 0,
			[]mcp.SSEEvent{{ID: "s1", Data: []byte{}, Retry: -1}}},
		{"a time to retry alone", "retry: 0\n\n", 0, []mcp.SSEEvent{{}}},
		{"bad ids and times are passed over", "id: a\x00b\nretry: soon\nretry: -1\nretry: +1\ndata: x\n\n", 0,
			[]mcp.SSEEvent{data("x")}},
		{"unknown fields", "datas: y\n data: z\nDATA: w\ndata: x\n\n", 0, []mcp.SSEEvent{data("x")}},
		{"no field runs into the next event", "id: 1\nevent: e\n\ndata: x\n\n", 0,
			[]mcp.SSEEvent{{ID: "1", Name: "e", Retry: -1}, data("x")}},
		{"an event cut off is none", "data: a\n\ndata: b\n", 0, []mcp.SSEEvent{data("a")}},
		{"a line cut off is none", "data: a\n\ndata: b", 0, []mcp.SSEEvent{data("a")}},
		{"longer than the buffer", "data: " + long + "\r\ndata: y\r\n\r\n", 0, []mcp.SSEEvent{data(long + "\ny")}},
		{"at the bound", "data: 67890\n\n", 11, []mcp.SSEEvent{data("67890")}},
		{"over the bound", "data: 678901\n\ndata: x\n\n", 11, []mcp.SSEEvent{{Name: "(too long)"}, data("x")}},
		{"over the bound by many lines", "data: a\ndata: b\ndata: c\nid: 9\n\ndata: x\n\n", 11,
			[]mcp.SSEEvent{{Name: "(too long)"}, data("x")}},
		{"far over the bound", "data: " + long + "\n\ndata: x\n\n", 11,
			[]mcp.SSEEvent{{Name: "(too long)"}, data("x")}},
		{"signs of life are not part of an event", strings.Repeat(": alive\n", 100) + "data: x\n\n", 11,
			[]mcp.SSEEvent{data("x")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, readEvents(strings.NewReader(tt.text), tt.max), sameBytes); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(tt.want, readEvents(iotest.OneByteReader(strings.NewReader(tt.text)), tt.max),
				sameBytes); d != "" {
				t.Errorf("byte by byte: %s", d)
			}
		})
	}
}

func TestEventReaderGivesTheSourcesError(t *testing.T) {
	got := readEvents(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(io.ErrUnexpectedEOF)),
		0)
	want := []mcp.SSEEvent{data("a"), {Name: "(unexpected EOF)"}}
	if d := cmp.Diff(want, got, sameBytes); d != "" {
		t.Error(d)
	}
}

// An event is given as soon as its blank line is there, in CR too: whether a LF follows must not be waited for.
func TestEventsAreNotHeldBack(t *testing.T) {
	out, in := io.Pipe()
	events := mcp.NewSSEReader(out, 0)
	for _, text := range []string{"data: x\r\r", "\ndata: x\r\n\r", "\ndata: x\n\n"} {
		done := make(chan error, 1)
		go func() {
			_, err := in.Write([]byte(text))
			done <- err
		}()
		e, err := events.Next()
		if d := cmp.Diff(data("x"), e, sameBytes); err != nil || d != "" {
			t.Errorf("after %q: %v %s", text, err, d)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestEventsBelongToTheCaller(t *testing.T) {
	events := mcp.NewSSEReader(strings.NewReader("data: first\n\ndata: other\n\n"), 0)
	first, _ := events.Next()
	if _, err := events.Next(); err != nil {
		t.Fatal(err)
	}
	if string(first.Data) != "first" {
		t.Errorf("the first event became %q", first.Data)
	}
}

func TestAppendEvent(t *testing.T) {
	for _, tt := range []struct {
		event mcp.SSEEvent
		want  string
	}{
		{mcp.SSEEvent{Data: []byte(`{"id":1}`)}, "data: {\"id\":1}\n\n"},
		{mcp.SSEEvent{Name: "message", ID: "3", Data: []byte("a\nb\r\nc\rd\n")},
			"event: message\nid: 3\ndata: a\ndata: b\ndata: c\ndata: d\ndata: \n\n"},
		{mcp.SSEEvent{ID: "3", Data: []byte{}}, "id: 3\ndata: \n\n"},
		{mcp.SSEEvent{Retry: 1500 * time.Millisecond}, "retry: 1500\n\n"},
		{mcp.SSEEvent{ID: "a\nid: b", Name: "x\r\n\r\ndata: y", Data: []byte("z")},
			"event: xdata: y\nid: aid: b\ndata: z\n\n"},
	} {
		if got := string(mcp.AppendSSEEvent([]byte("> "), tt.event)); got != "> "+tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// FuzzEvents is row FZ-4: events are the same however the bytes arrive, and those that are written are read back.
func FuzzEvents(f *testing.F) {
	f.Add("data: a\r\ndata: b\r\n\r\n: c\nid: 1\nretry: 5\n\ndata: d\r\r", "e", "7", []byte("x\ny"), 0)
	f.Add("\xef\xbb\xbfdata: aaaaaaaaaaaaaaaaaaaa\n\ndata\n\n", "", "", []byte{}, 8)
	f.Fuzz(func(t *testing.T, text, name, id string, content []byte, max int) {
		max &= 0xff
		got := readEvents(strings.NewReader(text), max)
		if d := cmp.Diff(got, readEvents(iotest.OneByteReader(strings.NewReader(text)), max), sameBytes); d != "" {
			t.Errorf("byte by byte: %s", d)
		}
		e := mcp.SSEEvent{Name: name, ID: id, Data: append([]byte{'.'}, content...), Retry: -1}
		again := readEvents(bytes.NewReader(mcp.AppendSSEEvent(mcp.AppendSSEEvent(nil, e), e)), 0)
		clean := strings.NewReplacer("\n", "", "\r", "", "\x00", "")
		e.Name, e.ID = clean.Replace(name), clean.Replace(id)
		e.Data = []byte(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(e.Data)))
		if d := cmp.Diff([]mcp.SSEEvent{e, e}, again, sameBytes); d != "" {
			t.Error(d)
		}
	})
}

func ExampleAppendSSEEvent() {
	stream := mcp.AppendSSEEvent(nil, mcp.SSEEvent{ID: "1", Data: []byte(`{"jsonrpc":"2.0","id":7,"result":{}}`)})
	e, err := mcp.NewSSEReader(bytes.NewReader(stream), 0).Next()
	fmt.Println(e.ID, string(e.Data), err)
	// Output: 1 {"jsonrpc":"2.0","id":7,"result":{}} <nil>
}
