package tui

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// A reply is what Ask returned.
type reply struct {
	text string
	err  error
}

// askFor asks a question in a goroutine.
func askFor(ctx context.Context, a *Asker, kind ReplyKind, question string) <-chan reply {
	replies := make(chan reply, 1)
	go func() {
		text, err := a.Ask(ctx, CommandQuestion{Command: "/mcp add", Question: question, Kind: kind,
			Text: "server demo\x1b[31m changed [-this-] into {+that+}\n\n  see https://example.com/x\n"})
		replies <- reply{text, err}
	}()
	return replies
}

// TestQuestionsOfCommands asks questions of each kind. All that the command printed is shown, without its control
// characters.
func TestQuestionsOfCommands(t *testing.T) {
	o := Options{Session: newSession(t, &script{}, nil), Asker: NewAsker()}
	x := open(t, 60, 24, o)
	x.shows("Enter sends")
	for _, c := range []struct {
		kind       ReplyKind
		keys, want string
		err        error
		shown      string
	}{
		{ReplyYesNo, "y", "y", nil, "Really? yes"},
		{ReplyYesNo, "n", "n", nil, "Really? no"},
		{ReplyLine, "some words\r", "some words", nil, "Really? some words"},
		{ReplyLine, "\r", "", nil, "Really?"},
		{ReplyLine, "\x1b", "", io.EOF, "Really? no reply"},
		{ReplySecret, "hunter2\r", "hunter2", nil, "Really? a secret"},
	} {
		replies := askFor(t.Context(), o.Asker, c.kind, "Really?")
		x.shows("/mcp add: Really?", "changed [-this-] into {+that+}", "see https://example.com/x")
		x.pass(time.Second)
		x.press(c.keys)
		if got := <-replies; got.text != c.want || !errors.Is(got.err, c.err) {
			t.Errorf("%q: got %q, %v, want %q, %v", c.keys, got.text, got.err, c.want, c.err)
		}
		if text := x.shows(c.shown, "!/mcp add: Really?"); strings.Contains(text, "hunter2") || !strings.Contains(text, `demo\u001b`) {
			t.Errorf("the terminal shows\n%s", text)
		}
	}
}

// TestKeysBeforeAQuestionOfACommand types a prompt, and pastes a text, at the moment when a question appears. They are no
// reply to it.
func TestKeysBeforeAQuestionOfACommand(t *testing.T) {
	for _, kind := range []ReplyKind{ReplyLine, ReplySecret, ReplyYesNo} {
		o := Options{Session: newSession(t, &script{}, nil), Asker: NewAsker()}
		x := open(t, 60, 24, o)
		x.shows("Enter sends")
		replies := askFor(t.Context(), o.Asker, kind, "Really?")
		x.shows("/mcp add: Really?")
		x.press("yes, fix the bug\x1b[200~pasted\x1b[201~\r\x03")
		x.shows("Ctrl-C again ends the program.")
		x.pass(time.Second)
		keys, want := "typed later\r", "typed later"
		if kind == ReplyYesNo {
			keys, want = "n", "n"
		}
		x.press(keys)
		if got := <-replies; got.text != want || got.err != nil {
			t.Errorf("kind %d: got %q, %v, want %q", kind, got.text, got.err, want)
		}
	}
}

// TestQuestionThatEnds takes a question back when its context ends, and ends it with the session.
func TestQuestionThatEnds(t *testing.T) {
	o := Options{Session: newSession(t, &script{}, nil), Asker: NewAsker()}
	x := open(t, 60, 24, o)
	ctx, cancel := context.WithCancel(t.Context())
	replies := askFor(ctx, o.Asker, ReplyLine, "Still needed?")
	x.shows("Still needed?")
	cancel()
	if got := <-replies; !errors.Is(got.err, context.Canceled) {
		t.Errorf("got %v", got)
	}
	x.shows("server demo", "!Still needed?")
	o.Asker.Tell("The server demo waits.")
	o.Asker.TellOutput("two\nlines")
	x.shows("The server demo waits.", "  two\n  lines")
	replies = askFor(t.Context(), o.Asker, ReplyYesNo, "And then?")
	x.shows("And then?")
	o.Asker.close()
	if got := <-replies; !errors.Is(got.err, io.EOF) {
		t.Errorf("got %v", got)
	}
	if got := <-askFor(t.Context(), o.Asker, ReplyYesNo, "Too late?"); !errors.Is(got.err, io.EOF) {
		t.Errorf("got %v", got)
	}
}

// TestQuestionsOfCommandsInPlainOutput answers them by lines. A path is an answer and not a command, and a secret is not
// asked for.
func TestQuestionsOfCommandsInPlainOutput(t *testing.T) {
	in, keys := io.Pipe()
	out := &transcriptOf{changed: make(chan struct{})}
	o := Options{Session: newSession(t, &script{}, nil), Dir: t.TempDir(), Asker: NewAsker(),
		Terminal: Terminal{In: in, Out: out, Env: []string{"TERM=dumb"}, Width: 72}}
	done := make(chan error, 1)
	go func() { done <- Run(t.Context(), o) }()
	for _, c := range []struct {
		kind       ReplyKind
		line, want string
		err        error
	}{{ReplyYesNo, "y", "y", nil}, {ReplyYesNo, "n", "n", nil}, {ReplyLine, "/bin/sh", "/bin/sh", nil}, {ReplyLine, "!", "", io.EOF},
		{ReplySecret, "", "", io.EOF}} {
		question := "Number " + c.line + "?"
		replies := askFor(t.Context(), o.Asker, c.kind, question)
		if c.kind != ReplySecret {
			out.shows(t, question)
			if _, err := io.WriteString(keys, c.line+"\n"); err != nil {
				t.Fatal(err)
			}
		}
		if got := <-replies; got.text != c.want || !errors.Is(got.err, c.err) {
			t.Errorf("%q: got %q, %v, want %q, %v", c.line, got.text, got.err, c.want, c.err)
		}
	}
	out.shows(t, "cannot hide what you type")
	_ = keys.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestForeignResultWithoutItsMarks shows a result of a server without the lines around it, which are for the model.
func TestForeignResultWithoutItsMarks(t *testing.T) {
	for from, want := range map[string]string{
		"[TOOL_OUTPUT::W::BEGIN source=fs]\na\nb\n[TOOL_OUTPUT::W::END]":                         "a\nb",
		"[TOOL_OUTPUT::W::BEGIN server=fs tool=read]\na\n[TOOL_OUTPUT::W::END]":                  "a",
		"[TOOL_OUTPUT::W::BEGIN server=fs tool=read flagged=override]\na\n[TOOL_OUTPUT::W::END]": "flagged: override\na",
		"[TOOL_OUTPUT::W::BEGIN server=fs tool=read]\na\n[TOOL_OUTPUT::X::END]":                  "[TOOL_OUTPUT::W::BEGIN server=fs tool=read]\na\n[TOOL_OUTPUT::X::END]",
		"no marks": "no marks",
	} {
		if got := unfenced(from); got != want {
			t.Errorf("%q: got %q, want %q", from, got, want)
		}
	}
}
