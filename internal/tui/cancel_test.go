package tui

import (
	"context"
	"io"
	"os"
	"testing"
)

// waitCommand is a command that waits until it is cancelled.
func waitCommand() Command {
	return Command{Name: "wait", Run: func(ctx context.Context, _ string) (Output, error) {
		<-ctx.Done()
		return Output{Text: "The wait was cancelled."}, nil
	}}
}

// TestCancelOfACommand cancels a command after another command and a run have ended.
func TestCancelOfACommand(t *testing.T) {
	x := open(t, 80, 30, Options{Commands: []Command{waitCommand()},
		Session: newSession(t, &script{answers: []answer{says("The answer."), streams("waiting ", "", nil)}}, nil)})
	x.press("/wait\r")
	x.shows("> /wait")
	x.press("/cost\r")
	x.shows("output: 0 tokens")
	x.press("hello\r")
	x.shows("The answer.", "!working")
	x.press("again\r")
	x.shows("waiting")
	x.press("\x03")
	x.shows("The run ended: cancelled", "!working", "!The wait was cancelled.")
	x.press(" \x03") // the first cancels only the run
	x.shows("The wait was cancelled.")
	x.press(" \x03")
	x.shows("Ctrl-C again ends the program.", "!Cancelled.")
	x.press("\x03")
	if err := x.ends(); err != nil {
		t.Fatal(err)
	}
}

// TestPlainCancelOfACommand is TestCancelOfACommand with plain output.
func TestPlainCancelOfACommand(t *testing.T) {
	in, keys := io.Pipe()
	out := &transcriptOf{changed: make(chan struct{})}
	interrupts := make(chan os.Signal)
	o := Options{Dir: t.TempDir(), Commands: []Command{waitCommand()},
		Session: newSession(t, &script{answers: []answer{says("The answer."), streams("First block.\n\nwaiting", "", nil)}}, nil)}
	o.Terminal = Terminal{In: in, Out: out, Plain: true, Interrupts: interrupts}
	done := make(chan error, 1)
	go func() { done <- Run(t.Context(), o) }()
	for _, s := range []struct{ line, want string }{{"/wait", ""}, {"/cost", "output: 0 tokens"}, {"hello", "The answer.\nReady."},
		{"again", "First block."}} {
		send(t, keys, s.line)
		out.shows(t, s.want)
	}
	interrupts <- os.Interrupt
	out.shows(t, "The run ended: cancelled\nReady.")
	send(t, keys, "/thinking")
	out.shows(t, "Levels:")
	interrupts <- os.Interrupt
	out.shows(t, "The wait was cancelled.")
	send(t, keys, "/session")
	out.shows(t, "mode: default")
	interrupts <- os.Interrupt
	out.shows(t, "\nCtrl-C again ends the program.")
	interrupts <- os.Interrupt
	_ = keys.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
