//go:build linux

package tui

import (
	"io"
	"sync"
	"testing"

	"github.com/creack/pty"
)

// TestOnRealTerminal runs the program on a pseudo-terminal of the system, in raw mode, and changes its size.
func TestOnRealTerminal(t *testing.T) {
	outside, inside, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	if err := pty.Setsize(outside, &pty.Winsize{Rows: 20, Cols: 50}); err != nil {
		t.Fatal(err)
	}
	out := &transcriptOf{changed: make(chan struct{})}
	var tasks sync.WaitGroup
	tasks.Go(func() { _, _ = io.Copy(out, outside) }) // ends with the terminal
	o := Options{Session: newSession(t, &script{answers: []answer{says("The answer.")}}, nil), Dir: t.TempDir()}
	o.Terminal = Terminal{In: inside, Out: inside, Env: []string{"TERM=xterm-256color"}}
	done := make(chan error, 1)
	go func() { done <- Run(t.Context(), o) }()
	out.shows(t, "/help lists")
	for _, s := range []struct{ keys, want string }{{"Go\r", "The answer."}, {"/keys\r", "command palette"}} {
		if _, err := io.WriteString(outside, s.keys); err != nil {
			t.Fatal(err)
		}
		out.shows(t, s.want)
	}
	if _, err := io.WriteString(outside, "\x04"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	_ = inside.Close()
	_ = outside.Close()
	tasks.Wait()
}
