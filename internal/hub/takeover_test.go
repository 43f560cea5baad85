//go:build unix

package hub

import (
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// aLent gives what a hub serves a client with, the shim's end, and the client's ends of its input and output.
func aLent(t *testing.T) (l *passedConn, shim *lineConn, input, output *os.File) {
	t.Helper()
	shim, theirs := socketPair(t)
	in, input := pipe(t)
	output, out := pipe(t)
	l = &passedConn{
		shimConn: &shimConn{conn: theirs.conn}, shimLine: theirs, in: newPassedInput(in), out: newPassedOutput(out),
		ring: testSlate(t), conv: newConversation(),
		shimGone: make(chan struct{}), end: func() {},
	}
	t.Cleanup(func() {
		_ = l.Close()
		l.work.Wait()
	})
	return l, shim, input, output
}

// TestNobodySpeaksBeforeTheShimHasMendedTheLine: a hub that takes over has something to say at once. The client hears
// it behind what the shim says of the hub before, which may have died in the midst of a line.
func TestNobodySpeaksBeforeTheShimHasMendedTheLine(t *testing.T) {
	l, shim, input, output := aLent(t)
	note, answer := listChangedLines()[0], `{"jsonrpc":"2.0","id":`+replayIDPrefix+`0","result":{}}`
	if _, err := l.Write(append([]byte(answer+"\n"), note...)); err != nil {
		t.Fatal(err)
	}
	if text, err := shim.in.Next(); err != nil || string(text) != answer {
		t.Errorf("the shim heard %q: %v", text, err)
	}
	if _, err := l.out.Write([]byte("!\n")); err != nil { // the shim has the same output
		t.Fatal(err)
	}
	if err := shim.writeLine(mcp.Message{Method: noticeStart}.Append(nil)); err != nil {
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

// TestAHubThatSpeaksAfterItsConnection ends a hub whose client reads slowly: it said an answer to its end, and read a
// call, after its connection was closed. Both count: the next hub comes when it is gone.
func TestAHubThatSpeaksAfterItsConnection(t *testing.T) {
	whole := `{"jsonrpc":"2.0","id":7,"result":{"content":"` + strings.Repeat("x", 3*pipeAtomicSize) + `"}}` + "\n"
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
		func(t *testing.T, l *lineConn, _ *os.File, s *sharedRing) {
			defer close(gone)
			heardUpTo(t, l, noticeStart)
			s.putRecord(recRead, call("7"))
			s.putRecord(recLongWrite, nil)
			_, _ = io.WriteString(c.out, whole[:pipeAtomicSize])
			_ = l.conn.Close()
			<-searched
			s.putRecord(recRead, call("8"))
			_, _ = io.WriteString(c.out, whole[pipeAtomicSize:len(whole)-1])
			s.putRecord(recAnswered, []byte("7"))
			s.putRecord(recWriting, []byte("\n"))
			_, _ = io.WriteString(c.out, "\n")
			s.putRecord(recWritten, nil)
		},
		func(t *testing.T, l *lineConn, _ *os.File, _ *sharedRing) { heardUpTo(t, l, noticeStart) })
	answers := map[string]int{}
	for said := range strings.Lines(told) {
		m, err := mcp.ParseMessage([]byte(strings.TrimSpace(said)))
		if err != nil {
			t.Errorf("the client heard %.60q", said)
		}
		answers[string(m.ID)]++
	}
	if answers["7"] != 1 || answers["8"] != 1 {
		t.Errorf("the answers to each call: %v", answers)
	}
}

// TestAHurriedHubIsHeardOut: a client that was to move and took too long does not go on elsewhere before the hub has
// let its output go.
func TestAHurriedHubIsHeardOut(t *testing.T) {
	ours, theirs := socketPair(t)
	closeWriteFunc(ours)()
	if _, err := theirs.in.Next(); err != io.EOF {
		t.Errorf("the hub is not told: %v", err)
	}
	if err := theirs.writeLine([]byte(`{}`)); err != nil {
		t.Error(err)
	}
	if text, err := ours.in.Next(); err != nil || string(text) != `{}` {
		t.Errorf("the shim hears %q: %v", text, err)
	}
}

// TestALargeRequestDoesNotMoveHalf has a client that is to move ask something that the inbox does not hold.
func TestALargeRequestDoesNotMoveHalf(t *testing.T) {
	l, _, input, _ := aLent(t)
	l.active = true
	l.moving.Store(true)
	close(l.shimGone) // who waits does not wait for long
	text := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` +
		strings.Repeat("x", inboxSize) + `"}}` + "\n"
	go func() { _, _ = io.WriteString(input, text) }()
	got := make([]byte, len(text))
	if _, err := io.ReadFull(l, got); err != nil || string(got) != text {
		t.Errorf("the hub read another request: %v", err)
	}
}

// TestALargeLineIsKnownToTheNextHub: what is too large to be noted as it is counts for the session all the same, and
// each of its requests is answered.
func TestALargeLineIsKnownToTheNextHub(t *testing.T) {
	long := strings.Repeat("x", 3*maxRecord)
	call := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"n","arguments":{"a":"` + long +
			`"}}}`
	}
	for name, tt := range map[string]struct {
		line string
		open []string
		kept bool
	}{
		"initialize": {`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{"icons":[{"src":"` +
			long + `"}]}}}`, []string{"1"}, true},
		"a call":      {call("1"), []string{"1"}, false},
		"a batch":     {"[" + call("1") + "," + call("2") + "]", []string{"1", "2"}, false},
		"two at once": {call("1") + call("2"), []string{"1", "2"}, false},
		"two small ones": {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"n"}} {"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
			[]string{"1", "2"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l, _, _, _ := aLent(t)
			c := newLender()
			c.ring = l.ring
			l.recordLine([]byte(tt.line+"\n"), 7)
			c.readRing()
			if open := slices.Sorted(maps.Keys(c.conv.pending)); !slices.Equal(open, tt.open) || c.inputOffset != 7 {
				t.Errorf("the requests %q are open, the place is %d", open, c.inputOffset)
			}
			if kept := string(c.conv.initialize); tt.kept && kept != tt.line {
				t.Errorf("%d bytes are kept of how the session began", len(kept))
			}
		})
	}
}

// TestAfterTheEndOfItsInputAClientIsAnswered: hubs die while one that has said all waits for the rest.
func TestAfterTheEndOfItsInputAClientIsAnswered(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":7,"result":{}}` + "\n"
	dies := func(notes ...string) scripted {
		return func(t *testing.T, l *lineConn, _ *os.File, s *sharedRing) {
			heardUpTo(t, l, noticeStart)
			for _, note := range notes {
				s.putRecord(note[0], []byte(note[1:]))
			}
		}
	}
	said := string(recRead) + strings.Repeat("\x00", 8)
	for name, tt := range map[string]struct {
		method string
		notes  []string
		want   string
	}{
		"about to be answered": {"tools/call", []string{"a7", "s" + answer}, answer},
		"never answered":       {"tools/list", nil, `"id":7,"error":`},
	} {
		t.Run(name, func(t *testing.T) {
			first := append([]string{said + `{"jsonrpc":"2.0","id":7,"method":"` + tt.method + `"}`,
				string(recEOF)}, tt.notes...)
			told := lendTo(t, newLender(), "", dies(first...), dies(string(recEOF)))
			if strings.Count(told, tt.want) != 1 {
				t.Errorf("the client heard %q", told)
			}
		})
	}
}
