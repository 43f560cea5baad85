//go:build unix

package hub

import (
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// aLent gives what a hub serves a client with, the shim's end, and the client's ends of its input and output.
func aLent(t *testing.T) (l *lent, shim *line, input, output *os.File) {
	t.Helper()
	shim, theirs := socketPair(t)
	in, input := pipe(t)
	output, out := pipe(t)
	l = &lent{
		voice: &voice{conn: theirs.conn}, line: theirs, in: newInput(in), out: newOutput(out), slate: testSlate(t), known: newTalk(),
		over: make(chan struct{}), end: func() {},
	}
	t.Cleanup(func() {
		_ = l.Close()
		l.work.Wait()
	})
	return l, shim, input, output
}

// TestNobodySpeaksBeforeTheShimHasMendedTheLine: a hub that takes over has something to say at once. The client hears it behind what
// the shim says of the hub before, which may have died in the midst of a line.
func TestNobodySpeaksBeforeTheShimHasMendedTheLine(t *testing.T) {
	l, shim, input, output := aLent(t)
	note, answer := listsChanged()[0], `{"jsonrpc":"2.0","id":`+replayPrefix+`0","result":{}}`
	if _, err := l.Write(append([]byte(answer+"\n"), note...)); err != nil {
		t.Fatal(err)
	}
	if text, err := shim.in.Next(); err != nil || string(text) != answer {
		t.Errorf("the shim heard %q: %v", text, err)
	}
	if _, err := l.out.Write([]byte("!\n")); err != nil { // the shim has the same output
		t.Fatal(err)
	}
	if err := shim.write(wire.Message{Method: noteGo}.Append(nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(input, "{}\n"); err != nil {
		t.Fatal(err)
	}
	if n, err := l.Read(make([]byte, 100)); err != nil || n != 3 {
		t.Errorf("read %d bytes: %v", n, err)
	}
	want := "!\n" + string(note)
	heard := make([]byte, len(want))
	if _, err := io.ReadFull(output, heard); err != nil || string(heard) != want {
		t.Errorf("the client heard %q, want %q: %v", heard, want, err)
	}
}

// TestAHubThatSpeaksAfterItsConnection ends a hub whose client reads slowly: it said an answer to its end, and read a call, after its
// connection was closed. Both count: the next hub comes when it is gone.
func TestAHubThatSpeaksAfterItsConnection(t *testing.T) {
	whole := `{"jsonrpc":"2.0","id":7,"result":{"content":"` + strings.Repeat("x", 3*atOnce) + `"}}` + "\n"
	call := func(id string) []byte {
		return append(make([]byte, 8), `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"n"}}`...)
	}
	c := newLender()
	searched, gone := make(chan struct{}), make(chan struct{})
	told := lendThrough(t, c, "", func(n int) {
		if n == 1 {
			close(searched)
			<-gone
		}
	},
		func(t *testing.T, l *line, _ *os.File, s *slate) {
			defer close(gone)
			heardUpTo(t, l, noteGo)
			s.put(noteSaid, call("7"))
			s.put(noteBegan, nil)
			_, _ = io.WriteString(c.out, whole[:atOnce])
			_ = l.conn.Close()
			<-searched
			s.put(noteSaid, call("8"))
			_, _ = io.WriteString(c.out, whole[atOnce:len(whole)-1])
			s.put(noteAnswered, []byte("7"))
			s.put(noteSaying, []byte("\n"))
			_, _ = io.WriteString(c.out, "\n")
			s.put(noteEnded, nil)
		},
		func(t *testing.T, l *line, _ *os.File, _ *slate) { heardUpTo(t, l, noteGo) })
	answers := map[string]int{}
	for said := range strings.Lines(told) {
		m, err := wire.Parse([]byte(strings.TrimSpace(said)))
		if err != nil {
			t.Errorf("the client heard %.60q", said)
		}
		answers[string(m.ID)]++
	}
	if answers["7"] != 1 || answers["8"] != 1 {
		t.Errorf("the answers to each call: %v", answers)
	}
}

// TestAHurriedHubIsHeardOut: a client that was to move and took too long does not go on elsewhere before the hub has let its output go.
func TestAHurriedHubIsHeardOut(t *testing.T) {
	ours, theirs := socketPair(t)
	urge(ours)()
	if _, err := theirs.in.Next(); err != io.EOF {
		t.Errorf("the hub is not told: %v", err)
	}
	if err := theirs.write([]byte(`{}`)); err != nil {
		t.Error(err)
	}
	if text, err := ours.in.Next(); err != nil || string(text) != `{}` {
		t.Errorf("the shim hears %q: %v", text, err)
	}
}

// TestALargeRequestDoesNotMoveHalf has a client that is to move ask something that the inbox does not hold.
func TestALargeRequestDoesNotMoveHalf(t *testing.T) {
	l, _, input, _ := aLent(t)
	l.going = true
	l.moving.Store(true)
	close(l.over) // who waits does not wait for long
	text := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + strings.Repeat("x", inboxSize) + `"}}` + "\n"
	go func() { _, _ = io.WriteString(input, text) }()
	got := make([]byte, len(text))
	if _, err := io.ReadFull(l, got); err != nil || string(got) != text {
		t.Errorf("the hub read another request: %v", err)
	}
}

// TestALargeLineIsKnownToTheNextHub: what is too large to be noted as it is counts for the session all the same, and each of its requests
// is answered.
func TestALargeLineIsKnownToTheNextHub(t *testing.T) {
	long := strings.Repeat("x", 3*noteMost)
	call := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"n","arguments":{"a":"` + long + `"}}}`
	}
	for name, tt := range map[string]struct {
		line string
		open []string
		kept bool
	}{
		"initialize":  {`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{"icons":[{"src":"` + long + `"}]}}}`, []string{"1"}, true},
		"a call":      {call("1"), []string{"1"}, false},
		"a batch":     {"[" + call("1") + "," + call("2") + "]", []string{"1", "2"}, false},
		"two at once": {call("1") + call("2"), []string{"1", "2"}, false},
		"two small ones": {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"n"}} {"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
			[]string{"1", "2"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l, _, _, _ := aLent(t)
			c := newLender()
			c.slate = l.slate
			l.noteLine([]byte(tt.line+"\n"), 7)
			c.look()
			if open := slices.Sorted(maps.Keys(c.talk.flights)); !slices.Equal(open, tt.open) || c.place != 7 {
				t.Errorf("the requests %q are open, the place is %d", open, c.place)
			}
			if kept := string(c.talk.initialize); tt.kept && kept != tt.line {
				t.Errorf("%d bytes are kept of how the session began", len(kept))
			}
		})
	}
}

// TestAfterTheEndOfItsInputAClientIsAnswered: hubs die while one that has said all waits for the rest.
func TestAfterTheEndOfItsInputAClientIsAnswered(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":7,"result":{}}` + "\n"
	dies := func(notes ...string) scripted {
		return func(t *testing.T, l *line, _ *os.File, s *slate) {
			heardUpTo(t, l, noteGo)
			for _, note := range notes {
				s.put(note[0], []byte(note[1:]))
			}
		}
	}
	said := string(noteSaid) + strings.Repeat("\x00", 8)
	for name, tt := range map[string]struct {
		method string
		notes  []string
		want   string
	}{
		"about to be answered": {"tools/call", []string{"a7", "s" + answer}, answer},
		"never answered":       {"tools/list", nil, `"id":7,"error":`},
	} {
		t.Run(name, func(t *testing.T) {
			first := append([]string{said + `{"jsonrpc":"2.0","id":7,"method":"` + tt.method + `"}`, string(noteEOF)}, tt.notes...)
			told := lendTo(t, newLender(), "", dies(first...), dies(string(noteEOF)))
			if strings.Count(told, tt.want) != 1 {
				t.Errorf("the client heard %q", told)
			}
		})
	}
}
