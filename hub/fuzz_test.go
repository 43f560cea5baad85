//go:build unix

package hub

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/wire"
	"github.com/google/go-cmp/cmp"
)

// FuzzHello reads what a process may say first. What is not refused says what it wants.
func FuzzHello(f *testing.F) {
	f.Add([]byte(`{"drawbridge":1,"want":"attach","pid":7,"paths":["a"],"environ":["HOME=/h"]}`))
	f.Add([]byte(`{"drawbridge":2,"want":"attach"}`))
	f.Add([]byte(`{"drawbridge":1,"want":"everything"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := parseHello(text)
		if err == nil && (h.Revision != revision || h.Want == "") {
			t.Errorf("%q was taken as %+v", text, h)
		}
	})
}

// FuzzTalk has client and hub say anything. Whatever it is, a move answers or repeats every request that was not answered,
// once.
func FuzzTalk(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`), []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`))
	f.Add([]byte(`[{"jsonrpc":"2.0","id":1,"method":"tools/list"},{"jsonrpc":"2.0","id":"x","method":"ping"}]`), []byte(`{"jsonrpc":"2.0","id":5,"method":"roots/list"}`))
	f.Add([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`), []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`))
	f.Fuzz(func(t *testing.T, client, hub []byte) {
		c := newTalk()
		c.said(client)
		c.heard(hub)
		open := len(c.flights)
		repeat, lost, _ := c.moved()
		if len(repeat)+len(lost) != open {
			t.Errorf("%d requests are open, %d are repeated and %d answered", open, len(repeat), len(lost))
		}
		for _, line := range answers(lost) {
			if err := wire.Valid(bytes.TrimSpace(line)); err != nil {
				t.Errorf("the answer %q: %v", line, err)
			}
		}
		c.said(client)
		c.heard(hub)
	})
}

// FuzzHeads compares the short look at a line of the surface's with a whole one.
func FuzzHeads(f *testing.F) {
	f.Add([]byte(`1`), "tools/list", []byte(`{}`), true)
	f.Add([]byte(`"a,\"method\":"`), "ping", []byte(`{"x":[1]}`), false)
	f.Fuzz(func(t *testing.T, id []byte, method string, value []byte, answer bool) {
		if wire.Valid(id) != nil || wire.Valid(value) != nil || len(bytes.TrimSpace(id)) != len(id) || method == "" {
			return
		}
		m := wire.Message{ID: id, Method: method, Params: value}
		if answer {
			m = wire.Message{ID: id, Result: value}
		}
		line := m.Append(nil)
		if bytes.ContainsAny(id, "\r\n") {
			return
		}
		got := headOf(line)
		if string(got.id) != string(id) || got.answer != answer || got.batch {
			t.Errorf("%q: %+v", line, got)
		}
	})
}

// FuzzRing puts notes in and takes them out.
func FuzzRing(f *testing.F) {
	f.Add([]byte{1, 2, 200, 3, 0, 255}, uint16(7))
	f.Fuzz(func(t *testing.T, sizes []byte, start uint16) {
		r, file, err := newRing()
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		defer r.close()
		r.written.Store(uint64(start))
		r.read.Store(uint64(start))
		type note struct {
			Kind byte
			Text string
		}
		var put, got []note
		for i, size := range sizes {
			text := bytes.Repeat([]byte{byte(i)}, int(size)*16)
			if r.put(byte(i), text) {
				put = append(put, note{byte(i), string(text)})
			}
			if size%5 == 0 {
				r.drain(func(kind byte, text []byte) { got = append(got, note{kind, string(text)}) })
			}
		}
		r.drain(func(kind byte, text []byte) { got = append(got, note{kind, string(text)}) })
		if diff := cmp.Diff(put, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestARingWithoutRoomSaysSo(t *testing.T) {
	r, file, err := newRing()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	defer r.close()
	n := 0
	for r.put(ringAnswered, []byte("12345")) {
		n++
	}
	if want := (ringSize - ringHead) / 8; n != want {
		t.Errorf("%d notes fit, want %d", n, want)
	}
	r.drain(func(byte, []byte) { n-- })
	if n != 0 || !r.put(ringAnswered, []byte("1")) {
		t.Errorf("%d notes were lost", n)
	}
}

func TestAnswersOfABatchAreOne(t *testing.T) {
	c := newTalk()
	c.said([]byte(`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}},{"jsonrpc":"2.0","id":2,"method":"ping"}]`))
	c.said([]byte(`{"jsonrpc":"2.0","id":3,"method":"tasks/cancel","params":{}}`))
	_, lost, _ := c.moved()
	lines := answers(lost)
	if len(lines) != 2 || !wire.IsBatch(lines[0]) {
		t.Fatalf("%q", lines)
	}
	var batch []struct{ ID int }
	if err := json.Unmarshal(lines[0], &batch); err != nil || len(batch) != 2 || batch[0].ID != 1 || batch[1].ID != 2 {
		t.Errorf("%s: %v", lines[0], err)
	}
}
