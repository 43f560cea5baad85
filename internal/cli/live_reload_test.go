//go:build unix

package cli_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// TestCommandsChangeALiveServe changes the configuration by commands, under a client with 32 calls in flight: each
// time it is told that its tools changed, and no call of another server is the worse for it.
func TestCommandsChangeALiveServe(t *testing.T) {
	l := newLive(t)
	l.configure("stays", "turns")
	l.start()
	for _, step := range []struct {
		command []string
		tool    string // of the server that it is about
		there   bool   // whether that is to be had afterwards
	}{
		{l.adding("comes"), "comes__echo", true},
		{[]string{"mcp", "disable", "turns"}, "turns__echo", false},
		{[]string{"mcp", "enable", "turns"}, "turns__echo", true},
		{[]string{"mcp", "remove", "comes", "--scope", "user"}, "comes__echo", false},
		{nil, "edited__echo", true}, // the file is edited by hand
	} {
		l.forget()
		var calls []<-chan mcp.Message
		for range 32 {
			calls = append(calls, l.ask("tools/call", `{"name":"stays__slow","arguments":{"ms":300}}`))
		}
		if step.command == nil {
			l.configure("stays", "turns", "edited")
		} else {
			l.command(step.command...)
		}
		l.await("list_changed", func() bool { return l.heard(mcp.NoteToolsChanged) })
		l.await(step.tool, func() bool {
			list := <-l.ask("tools/list", `{}`)
			return strings.Contains(string(list.Result), `"`+step.tool+`"`) == step.there
		})
		for _, c := range calls {
			if m := <-c; !strings.Contains(string(m.Result), "waited 300 ms") {
				t.Errorf("%v: a call of another server: %s%s", step.command, m.Result, m.Error)
			}
		}
	}
}

// A live is a home, and a client with a "drawbridge serve" in it.
type live struct {
	t          *testing.T
	home, file string
	in         io.WriteCloser

	mu      sync.Mutex
	next    int
	answers map[string]chan mcp.Message
	notes   []string
}

func newLive(t *testing.T) *live {
	home := t.TempDir()
	l := &live{t: t, home: home, file: filepath.Join(home, ".config", "drawbridge", "mcp.json"),
		answers: map[string]chan mcp.Message{}}
	if err := os.MkdirAll(filepath.Dir(l.file), 0o700); err != nil {
		t.Fatal(err)
	}
	return l
}

// configure writes the person's file.
func (l *live) configure(names ...string) {
	l.t.Helper()
	rows := map[string]json.RawMessage{}
	for _, name := range names {
		rows[name] = mcptest.ServerRow(l.t, "everything-legacy")
	}
	text, err := json.Marshal(map[string]any{"mcpServers": rows})
	if err == nil {
		err = os.WriteFile(l.file, text, 0o600)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// adding is the command that adds a server.
func (l *live) adding(name string) []string {
	command, args, env := mcptest.ServerCommand(l.t, "everything-legacy")
	words := []string{"mcp", "add", name, "--scope", "user"}
	for _, pair := range env {
		words = append(words, "--env", pair)
	}
	return append(append(words, "--", command), args...)
}

// drawbridge is the program with these words.
func (l *live) drawbridge(words ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		l.t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Args = append([]string{"drawbridge"}, words...)
	cmd.Dir = l.home
	cmd.Env = append(os.Environ(), "HOME="+l.home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "GORACE=atexit_sleep_ms=0")
	return cmd
}

func (l *live) command(words ...string) {
	l.t.Helper()
	if out, err := l.drawbridge(words...).CombinedOutput(); err != nil {
		l.t.Fatalf("drawbridge %s: %v\n%s", strings.Join(words, " "), err, out)
	}
}

// start starts the serve and opens a session.
func (l *live) start() {
	l.t.Helper()
	cmd := l.drawbridge("serve")
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	for _, err := range []error{inErr, outErr, cmd.Start()} {
		if err != nil {
			l.t.Fatal(err)
		}
	}
	l.in = in
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.read(out)
		_ = cmd.Wait()
	}()
	l.t.Cleanup(func() {
		_ = in.Close()
		<-done
	})
	<-l.ask("initialize",
		`{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"live","version":"1"}}`)
	l.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	l.await("the first call", func() bool {
		m := <-l.ask("tools/call", `{"name":"stays__echo","arguments":{"text":"x"}}`)
		return m.Error == nil && !strings.Contains(string(m.Result), "isError")
	})
}

func (l *live) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		m, err := mcp.ParseMessage(slices.Clone(lines.Bytes()))
		if err != nil {
			l.t.Errorf("not JSON-RPC on stdout: %q", lines.Text())
			continue
		}
		l.mu.Lock()
		if c := l.answers[string(m.ID)]; m.IsResponse() && c != nil {
			c <- m
		} else {
			l.notes = append(l.notes, m.Method)
		}
		l.mu.Unlock()
	}
}

func (l *live) say(text string) {
	if _, err := io.WriteString(l.in, text+"\n"); err != nil {
		l.t.Errorf("write to the serve: %v", err)
	}
}

func (l *live) ask(method, params string) <-chan mcp.Message {
	c := make(chan mcp.Message, 1)
	l.mu.Lock()
	l.next++
	id := fmt.Sprint(l.next)
	l.answers[id] = c
	l.mu.Unlock()
	l.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`)
	return c
}

func (l *live) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notes = nil
}

func (l *live) heard(method string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.notes, method)
}

func (l *live) await(what string, there func() bool) {
	l.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 3000 {
		if there() {
			return
		}
		<-tick.C
	}
	l.t.Fatalf("%s never came", what)
}
