package tui

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/google/go-cmp/cmp"
)

// A transcriptOf collects what plain output writes, and tells of changes.
type transcriptOf struct {
	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{}
}

func (w *transcriptOf) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.changed)
	w.changed = make(chan struct{})
	return w.text.Write(p)
}

func (w *transcriptOf) shows(t *testing.T, want string) {
	t.Helper()
	deadline := time.After(patience)
	for {
		w.mu.Lock()
		text, changed := w.text.String(), w.changed
		w.mu.Unlock()
		if strings.Contains(text, want) {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("the output does not have %q:\n%s", want, text)
		}
	}
}

func TestPlain(t *testing.T) {
	in, keys := io.Pipe()
	out := &transcriptOf{changed: make(chan struct{})}
	o := Options{Session: newSession(t, &script{answers: []answer{
		says(sample+" words.\n", call("c1", "edit", `{"path":"a.txt","oldText":"x","newText":"y"}`)),
		says("", call("c2", "ask", `{}`)),
		says("Done."),
	}}, asking(approval)), Dir: t.TempDir()}
	o.Terminal = Terminal{In: in, Out: out, Env: []string{"TERM=dumb"}, Width: 72}
	done := make(chan error, 1)
	go func() { done <- Run(t.Context(), o) }()
	type step struct{ wait, line string }
	for _, s := range []step{{"/help lists", "Explain it"}, {"Type y for once", "y"}, {"ask of the server", "n"},
		{"Done.\nReady.", "/name my session"}, {"The session has the name", "/nonsense"}, {"unknown command", "/quit"}} {
		out.shows(t, s.wait)
		if _, err := io.WriteString(keys, s.line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	_ = keys.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	got, path := out.text.String(), filepath.Join("testdata", "plain.txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if strings.ContainsAny(got, "\x1b\r\x08│─█") {
		t.Error("plain output has control characters or boxes")
	}
}

func TestPlainForm(t *testing.T) {
	in, keys := io.Pipe()
	out := &transcriptOf{changed: make(chan struct{})}
	o := Options{Session: newSession(t, &script{answers: []answer{says("", call("c1", "ask", `{}`)), says("Done.")}},
		asking(formQuestion)), First: "Ask", Dir: t.TempDir()}
	o.Terminal = Terminal{In: in, Out: out, Plain: true}
	done := make(chan error, 1)
	go func() { done <- Run(t.Context(), o) }()
	for _, s := range []struct{ wait, line string }{{"Your name", "A"}, {"at least 2", "Ada"}, {"age", ""},
		{"1. red", "2"}, {"news: type y or n", "y"}, {"Done.\nReady.", ""}} {
		out.shows(t, s.wait)
		if _, err := io.WriteString(keys, s.line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	out.shows(t, `content={"colour":"blue","name":"Ada","news":true}`)
	_ = keys.Close() // the end of the input ends the program
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestPlainQuestionAfterOneThatIsGone has questions end without an answer. The next one is printed before a line answers
// it.
func TestPlainQuestionAfterOneThatIsGone(t *testing.T) {
	first, second := make(chan struct{}), make(chan struct{})
	box := &tools{}
	box.call = func(ctx context.Context, c drawbridge.ToolCall, update func(agent.CallUpdate)) (agent.CallOutcome, error) {
		q := approval(c)
		if c.ID == "c1" {
			update(agent.CallUpdate{Question: &q})
			<-second
			return outcome("c1 has expired", nil), nil
		}
		<-first
		a, err := box.ask(ctx, q, func(u agent.CallUpdate) {
			update(u)
			if c.ID == "c2" {
				close(second)
			}
		})
		return outcome(fmt.Sprintf("%s allow=%v", c.ID, a.Allow), nil), err
	}
	in, keys := io.Pipe()
	out := &transcriptOf{changed: make(chan struct{})}
	interrupts := make(chan os.Signal)
	o := Options{Session: newSession(t, &script{answers: []answer{
		says("", call("c1", "fs__write", `{"n":1}`), call("c2", "fs__write", `{"n":2}`)),
		says("Again.", call("c3", "fs__write", `{"n":3}`)),
	}}, box), First: "Write", Dir: t.TempDir(), Asker: NewAsker()}
	o.Terminal = Terminal{In: in, Out: out, Plain: true, Interrupts: interrupts}
	done := make(chan error, 1)
	go func() { done <- Run(t.Context(), o) }()
	out.shows(t, `"n": 1`)
	close(first)
	out.shows(t, "c1 has expired")
	out.shows(t, `"n": 2`)
	send(t, keys, "y")
	out.shows(t, "c2 allow=true")
	out.shows(t, `"n": 3`)
	replies := askFor(t.Context(), o.Asker, ReplyYesNo, "And this?")
	o.Asker.Tell("The command waits.")
	out.shows(t, "The command waits.")
	interrupts <- os.Interrupt // the end of the run takes its question away
	out.shows(t, "Question: /mcp add: And this?")
	send(t, keys, "n")
	if got := <-replies; got.text != "n" || got.err != nil {
		t.Errorf("got %v", got)
	}
	_ = keys.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// send types a line.
func send(t *testing.T, keys io.Writer, line string) {
	t.Helper()
	if _, err := io.WriteString(keys, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

func TestPlainInterrupt(t *testing.T) {
	in, keys := io.Pipe()
	out := &transcriptOf{changed: make(chan struct{})}
	interrupts := make(chan os.Signal)
	o := Options{Session: newSession(t, &script{answers: []answer{streams("First block.\n\nwaiting", "", nil)}}, nil),
		First: "Go", Dir: t.TempDir()}
	o.Terminal = Terminal{In: in, Out: out, Plain: true, Interrupts: interrupts}
	done := make(chan error, 1)
	go func() { done <- Run(t.Context(), o) }()
	out.shows(t, "First block.")
	interrupts <- os.Interrupt
	out.shows(t, "The run ended: cancelled")
	interrupts <- os.Interrupt
	_ = keys.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
