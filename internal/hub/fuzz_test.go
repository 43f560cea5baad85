//go:build unix

package hub

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

// FuzzHello reads what a process may say first. What is not refused says what it wants.
func FuzzHello(f *testing.F) {
	f.Add([]byte(`{"drawbridge":1,"want":"attach","pid":7,"paths":["a"],"environ":["HOME=/h"]}`))
	f.Add([]byte(`{"drawbridge":2,"want":"attach"}`))
	f.Add([]byte(`{"drawbridge":1,"want":"everything"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := parseHello(text)
		if err == nil && (h.Revision != protocolRevision || h.Want == "") {
			t.Errorf("%q was taken as %+v", text, h)
		}
	})
}

// FuzzTalk has client and hub say anything. Whatever it is, a move answers or repeats every request that was not
// answered, once.
func FuzzTalk(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`),
		[]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`))
	f.Add([]byte(`[{"jsonrpc":"2.0","id":1,"method":"tools/list"},{"jsonrpc":"2.0","id":"x","method":"ping"}]`),
		[]byte(`{"jsonrpc":"2.0","id":5,"method":"roots/list"}`))
	f.Add([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`),
		[]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`))
	f.Fuzz(func(t *testing.T, client, hub []byte) {
		c := newConversation()
		c.clientLine(client)
		c.hubLine(hub)
		open := len(c.pending)
		repeat, lost, _ := c.changeHub()
		if len(repeat)+len(lost) != open {
			t.Errorf("%d requests are open, %d are repeated and %d answered", open, len(repeat), len(lost))
		}
		for _, line := range lostResponseLines(lost) {
			if err := rawjson.Valid(bytes.TrimSpace(line)); err != nil {
				t.Errorf("the answer %q: %v", line, err)
			}
		}
		c.clientLine(client)
		c.hubLine(hub)
	})
}

// FuzzHeads compares the short look at a line of the surface's with a whole one.
func FuzzHeads(f *testing.F) {
	f.Add([]byte(`1`), "tools/list", []byte(`{}`), true)
	f.Add([]byte(`"a,\"method\":"`), "ping", []byte(`{"x":[1]}`), false)
	f.Fuzz(func(t *testing.T, id []byte, method string, value []byte, answer bool) {
		if rawjson.Valid(id) != nil || rawjson.Valid(value) != nil ||
			len(bytes.TrimSpace(id)) != len(id) || method == "" {
			return
		}
		m := mcp.Message{ID: id, Method: method, Params: value}
		if answer {
			m = mcp.Message{ID: id, Result: value}
		}
		line := m.Append(nil)
		if bytes.ContainsAny(id, "\r\n") {
			return
		}
		got := parseLineHead(line)
		if string(got.id) != string(id) || got.isResponse != answer || got.isBatch {
			t.Errorf("%q: %+v", line, got)
		}
	})
}

// FuzzSlate puts notes in and takes them out.
func FuzzSlate(f *testing.F) {
	f.Add([]byte{1, 2, 200, 3, 0, 255}, uint32(7))
	f.Fuzz(func(t *testing.T, sizes []byte, start uint32) {
		s := testSlate(t)
		s.written.Store(uint64(start))
		s.read.Store(uint64(start))
		type note struct {
			Kind byte
			Text string
		}
		var put, got []note
		for i, size := range sizes {
			text := bytes.Repeat([]byte{byte(i)}, int(size)*256)
			if ok, _ := s.putRecord(byte(i), text); ok {
				put = append(put, note{byte(i), string(text)})
			}
			if size%5 == 0 {
				s.readRecords(func(kind byte, text []byte) { got = append(got, note{kind, string(text)}) })
			}
		}
		s.readRecords(func(kind byte, text []byte) { got = append(got, note{kind, string(text)}) })
		if diff := cmp.Diff(put, got); diff != "" {
			t.Error(diff)
		}
	})
}

// FuzzInbox reads input in pieces, takes some lines, and stops: what was taken and the rest are the input, also where
// the last piece was not counted.
func FuzzInbox(f *testing.F) {
	f.Add([]byte("{\"a\":1}\n{}\n[1"), []byte{3, 9, 2}, uint32(inboxSize-4), true)
	f.Fuzz(func(t *testing.T, input, pieces []byte, start uint32, uncounted bool) {
		if len(input) > inboxSize || bytes.IndexByte(input, 0) >= 0 {
			return
		}
		s := testSlate(t)
		s.inboxRead.Store(uint64(start))
		s.inboxConsumed.Store(uint64(start))
		var taken []byte
		in := bytes.NewReader(input)
		for _, n := range pieces {
			_ = s.fillInbox(io.LimitReader(in, int64(n)))
			if line, ok := s.nextLine(); ok && n%2 == 0 {
				taken = append(taken, line...)
				s.consumeInbox(len(line))
			}
		}
		if uncounted {
			come := s.inboxRead.Load()
			_ = s.fillInbox(in)
			s.inboxRead.Store(come)
		}
		got := append(taken, s.unconsumedInbox(0)...)
		if want := input[:len(input)-in.Len()]; !bytes.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func testSlate(t *testing.T) *sharedRing {
	t.Helper()
	s, file, err := newSharedRing()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.close()
		_ = file.Close()
	})
	return s
}

func TestASlateWithoutRoomSaysSo(t *testing.T) {
	s := testSlate(t)
	n := 0
	for ok := true; ok; n++ {
		ok, _ = s.putRecord(recAnswered, []byte("12345"))
	}
	if want := ringSize/10 + 1; n != want {
		t.Errorf("the note number %d did not fit, want %d", n, want)
	}
	n--
	s.readRecords(func(byte, []byte) { n-- })
	if ok, full := s.putRecord(recAnswered, []byte("1")); n != 0 || !ok || full {
		t.Errorf("%d notes were lost; then %v, %v", n, ok, full)
	}
}

func TestAnswersOfABatchAreOne(t *testing.T) {
	c := newConversation()
	c.clientLine([]byte(
		`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}},{"jsonrpc":"2.0","id":2,"method":"ping"}]`))
	c.clientLine([]byte(`{"jsonrpc":"2.0","id":3,"method":"tasks/cancel","params":{}}`))
	_, lost, _ := c.changeHub()
	lines := lostResponseLines(lost)
	if len(lines) != 2 || !mcp.IsBatch(lines[0]) {
		t.Fatalf("%q", lines)
	}
	var batch []struct{ ID int }
	if err := json.Unmarshal(lines[0], &batch); err != nil || len(batch) != 2 || batch[0].ID != 1 || batch[1].ID != 2 {
		t.Errorf("%s: %v", lines[0], err)
	}
}
