//go:build unix

package hub

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// A scripted is a hub that does what a test says with what it is lent: in turn, one for each time that the shim
// attaches.
type scripted func(t *testing.T, l *lineConn, in *os.File, s *sharedRing)

// lendTo runs a lender through hubs, on a client whose input is given. It gives what the client was told.
func lendTo(t *testing.T, c *shimClient, input string, hubs ...scripted) string {
	t.Helper()
	return lendThrough(t, c, input, func(int) {}, hubs...)
}

// lendThrough is lendTo with a function that is called whenever the shim looks for the hub of that number, from 0,
// before it finds it.
func lendThrough(t *testing.T, c *shimClient, input string, search func(int), hubs ...scripted) string {
	t.Helper()
	in, client := pipe(t)
	told, out := pipe(t)
	c.in, c.out = in, out
	if _, err := io.WriteString(client, input); err != nil {
		t.Fatal(err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, script := range hubs {
			conn, err := listener.AcceptUnix()
			if err != nil {
				return
			}
			runScript(t, conn, script)
		}
	}()
	over, found := errors.New("no hub is left"), 0
	err = c.serve(t.Context(), func(context.Context) (*lineConn, error) {
		search(found)
		if found++; found > len(hubs) {
			return nil, over
		}
		conn, err := net.DialUnix("unix", nil, listener.Addr().(*net.UnixAddr))
		if err != nil {
			return nil, err
		}
		return &lineConn{conn: conn, in: mcp.NewLineReader(conn, 0)}, nil
	})
	if !errors.Is(err, over) && (err != nil || !c.eof) {
		t.Errorf("serve: %v", err)
	}
	_ = listener.Close() // what was not needed is not waited for
	<-done
	_ = out.Close()
	text, err := io.ReadAll(told)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func runScript(t *testing.T, conn *net.UnixConn, script scripted) {
	defer conn.Close()
	var files [3]*os.File
	for i := range files {
		f, err := receiveFile(conn)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		files[i] = f
	}
	s, err := openSharedRing(files[2])
	if err != nil {
		t.Error(err)
		return
	}
	defer s.close()
	script(t, &lineConn{conn: conn, in: mcp.NewLineReader(conn, 0)}, files[0], s)
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.Close()
		_ = w.Close()
	})
	return r, w
}

func newLender() *shimClient {
	return &shimClient{conv: newConversation(), replayTimeout: replayTimeout}
}

// heardUpTo gives the methods that the shim says, up to one.
func heardUpTo(t *testing.T, l *lineConn, last string) (methods []string) {
	t.Helper()
	for {
		text, err := l.in.Next()
		if err != nil {
			t.Errorf("the shim said %q and not %s: %v", methods, last, err)
			return methods
		}
		m, _ := mcp.ParseMessage(text)
		if methods = append(methods, m.Method); m.Method == last {
			return methods
		}
	}
}

// TestWhatWasReadIsNotLost has one hub read half a line, another die before it has read a word, and a third find it.
func TestWhatWasReadIsNotLost(t *testing.T) {
	const half = `{"jsonrpc":"2.0","id":1,"met`
	var found string
	lendTo(t, newLender(), half,
		func(t *testing.T, l *lineConn, in *os.File, s *sharedRing) {
			heardUpTo(t, l, noticeStart)
			come := s.inboxRead.Load()
			if err := s.fillInbox(in); err != nil {
				t.Error(err)
			}
			s.inboxRead.Store(come) // it died before it could count
		},
		func(*testing.T, *lineConn, *os.File, *sharedRing) {},
		func(t *testing.T, l *lineConn, _ *os.File, s *sharedRing) {
			heardUpTo(t, l, noticeStart)
			found = string(s.unconsumedInbox(0))
		})
	if found != half {
		t.Errorf("the third hub finds %q, want %q", found, half)
	}
}

// TestAClientHasTheWordThoughAWatchDoesNotSettle has a hub that never answers what the session said before.
func TestAClientHasTheWordThoughAWatchDoesNotSettle(t *testing.T) {
	c := newLender()
	c.replayTimeout = 20 * time.Millisecond
	c.conv.clientLine([]byte(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a:"}}`))
	delete(c.conv.pending, "1")
	lendTo(t, c, "", func(t *testing.T, l *lineConn, _ *os.File, _ *sharedRing) {
		if got := strings.Join(heardUpTo(t, l, noticeStart), " "); got != mcp.MethodSubscribe+" "+noticeStart {
			t.Errorf("the shim said %s", got)
		}
	})
}

// TestAHubThatDiesWhileItSpeaks leaves open whether a small answer was heard, and cuts a large one off.
func TestAHubThatDiesWhileItSpeaks(t *testing.T) {
	for name, tt := range map[string]struct {
		kind byte
		text string
		want string
	}{
		"a small answer": {recWriting, "{\"id\":1}\n", "{\"id\":1}\n"},
		"a large one":    {recLongWrite, "", "!\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := lendTo(t, newLender(), "",
				func(t *testing.T, l *lineConn, _ *os.File, s *sharedRing) {
					heardUpTo(t, l, noticeStart)
					s.putRecord(tt.kind, []byte(tt.text))
				},
				func(t *testing.T, l *lineConn, _ *os.File, _ *sharedRing) { heardUpTo(t, l, noticeStart) })
			if got != tt.want {
				t.Errorf("the client was told %q, want %q", got, tt.want)
			}
		})
	}
}

// TestALargeAnswerIsHeardOnce has a hub die in the midst of one, and at its end. The client has one answer to its
// call: all of it, or that nobody knows.
func TestALargeAnswerIsHeardOnce(t *testing.T) {
	whole := `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"` +
		strings.Repeat("x", 3*pipeAtomicSize) + `"}]}}` + "\n"
	body := strings.TrimSuffix(whole, "\n")
	began, end := "b", "b a:7 s:\n"
	small := `{"jsonrpc":"2.0","id":7,"result":{}}` + "\n"
	for name, tt := range map[string]struct{ notes, heard string }{
		"before it":         {began, ""},
		"in its midst":      {began, body[:pipeAtomicSize]},
		"before its end":    {began, body},
		"while it is noted": {began + " a:7", body},
		"at its end":        {end, body},
		"after its end":     {end, whole},
		"when it was noted": {end + " e", whole},

		"a small one, while it is noted": {"a:7", ""},
		"a small one, before it":         {"a:7 s:" + small, ""},
		"a small one, after it":          {"a:7 s:" + small + " e", small},
	} {
		t.Run(name, func(t *testing.T) {
			c := newLender()
			told := lendTo(t, c, "",
				func(t *testing.T, l *lineConn, _ *os.File, s *sharedRing) {
					heardUpTo(t, l, noticeStart)
					call := []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"n"}}`)
					s.putRecord(recRead, append(make([]byte, 8), call...))
					for note := range strings.SplitSeq(tt.notes, " ") {
						kind, text, _ := strings.Cut(note, ":")
						s.putRecord(kind[0], []byte(text))
					}
					_, _ = io.WriteString(c.out, tt.heard)
				},
				func(t *testing.T, l *lineConn, _ *os.File, _ *sharedRing) { heardUpTo(t, l, noticeStart) })
			answers := 0
			for said := range strings.Lines(told) {
				if m, err := mcp.ParseMessage([]byte(strings.TrimSpace(said))); err == nil && string(m.ID) == "7" {
					answers++
				}
			}
			if answers != 1 {
				t.Errorf("%d answers: %.300q", answers, told)
			}
		})
	}
	r, w := pipe(t)
	l := &passedConn{ring: testSlate(t), out: newPassedOutput(w), conv: newConversation(), active: true,
		shimGone: make(chan struct{})}
	if _, err := l.Write([]byte(whole)); err != nil {
		t.Fatal(err)
	}
	heard := make([]byte, len(whole))
	if _, err := io.ReadFull(r, heard); err != nil || string(heard) != whole {
		t.Errorf("the client heard %.60q: %v", heard, err)
	}
	var noted []string
	l.ring.readRecords(func(kind byte, text []byte) {
		noted = append(noted, strings.TrimSuffix(string(kind)+":"+string(text), ":"))
	})
	if got := strings.Join(noted, " "); got != end+" e" {
		t.Errorf("noted was %q, want %q", got, end+" e")
	}
}

// TestALineOverTheBoundTakesNoMoreMemory reads a line that does not end for long, and the one behind it.
func TestALineOverTheBoundTakesNoMoreMemory(t *testing.T) {
	r, w := pipe(t)
	go func() {
		block := strings.Repeat("x", 1<<20)
		for range 40 {
			_, _ = io.WriteString(w, block)
		}
		_, _ = io.WriteString(w, "\n{}\n")
		_ = w.Close()
	}()
	l := &passedConn{in: newPassedInput(r), ring: testSlate(t), conv: newConversation(), active: true,
		shimGone: make(chan struct{})}
	l.shimConn = nil // nothing is said to the shim: the slate has room
	lines := bufio.NewScanner(l)
	var got []string
	for lines.Scan() {
		got = append(got, lines.Text())
		if cap(l.large) > 2*mcp.DefaultMaxLine {
			t.Errorf("%d bytes of a line are kept", cap(l.large))
		}
	}
	if strings.Join(got, " ") != tooLongMessage+" {}" {
		t.Errorf("%d lines: %.100q", len(got), got)
	}
}

// TestAnIDThatNoNoteHoldsHoldsNothingUp answers a request with an id of 100 KB.
func TestAnIDThatNoNoteHoldsHoldsNothingUp(t *testing.T) {
	l := &passedConn{ring: testSlate(t), conv: newConversation(), shimGone: make(chan struct{})}
	began := time.Now()
	l.recordLine([]byte(`{"jsonrpc":"2.0","id":"`+strings.Repeat("x", 100<<10)+
		`","method":"tools/call","params":{"name":"`+strings.Repeat("y", 100<<10)+`"}}`), 1)
	l.putRecord(recAnswered, []byte(strings.Repeat("x", 100<<10)))
	if took := time.Since(began); took > ringWaitTimeout/2 {
		t.Errorf("it took %v", took)
	}
}

func TestATerminalIsNotLent(t *testing.T) {
	r, _ := pipe(t)
	if _, ok := passableFile(r); !ok {
		t.Error("a pipe is not lent")
	}
	terminal, other, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	defer terminal.Close()
	defer other.Close()
	for what, v := range map[string]any{"a terminal": other, "no file": strings.NewReader("")} {
		if _, ok := passableFile(v); ok {
			t.Errorf("%s is lent", what)
		}
	}
}
