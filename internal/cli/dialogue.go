package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// A dialogue is a person at a terminal: questions go to standard error, answers come from standard input. Ctrl-C and
// Ctrl-D are no answer. While it lasts, the terminal is ours.
type dialogue struct {
	ctx      context.Context // the command's: what waits for an answer ends with it
	terminal *term.Terminal
	fd       int
	before   *term.State
}

// asks says whether there is a person who can be asked: somebody who sees standard error and types on standard input.
func (a *app) asks() bool {
	in, ok := a.In.(*os.File)
	return ok && term.IsTerminal(int(in.Fd())) && isTerminal(a.Err)
}

// dialogue begins one; false where nobody is there. It is to be closed.
func (a *app) dialogue(ctx context.Context) (*dialogue, bool) {
	if !a.asks() {
		return nil, false
	}
	fd := int(a.In.(*os.File).Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return nil, false
	}
	terminal := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{a.In, a.Err}, "")
	if width, height, err := term.GetSize(fd); err == nil && width > 0 {
		_ = terminal.SetSize(width, height) // a wrong size only wraps lines elsewhere
	}
	return &dialogue{ctx, terminal, fd, before}, true
}

// close gives the terminal back.
func (d *dialogue) close() { _ = term.Restore(d.fd, d.before) }

// Ask puts a question. The error says that there is no answer.
func (d *dialogue) Ask(question string) (string, error) {
	d.terminal.SetPrompt(question)
	return d.await(d.terminal.ReadLine)
}

// AskHidden is Ask for an answer that is not shown.
func (d *dialogue) AskHidden(question string) (string, error) {
	return d.await(func() (string, error) { return d.terminal.ReadPassword(question) })
}

// await waits for an answer.
func (d *dialogue) await(read func() (string, error)) (string, error) {
	type answer struct {
		line string
		err  error
	}
	answers := make(chan answer, 1)
	var reading sync.WaitGroup // a read of a terminal cannot be interrupted: when the command ends, the process does
	reading.Go(func() {
		line, err := read()
		if errors.Is(err, term.ErrPasteIndicator) {
			err = nil
		}
		answers <- answer{line, err}
	})
	select {
	case <-d.ctx.Done():
		return "", d.ctx.Err()
	case got := <-answers:
		return got.line, got.err
	}
}

// Say shows a text, a line or more.
func (d *dialogue) Say(text string) { fmt.Fprintln(d.terminal, text) }

// confirm asks for a yes at the terminal. An empty answer is otherwise; so is every other where nobody is there.
func (a *app) confirm(ctx context.Context, question string, otherwise bool) (bool, error) {
	d, ok := a.dialogue(ctx)
	if !ok {
		return false, errors.New("there is nobody to ask")
	}
	defer d.close()
	for {
		line, err := d.Ask(question)
		if err != nil {
			d.Say("")
			return false, err
		}
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "":
			return otherwise, nil
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		}
		d.Say("yes or no is needed")
	}
}

// agrees asks a yes-or-no question. Whatever is not a clear yes is a no, and so is the end of ctx.
func (a *app) agrees(ctx context.Context, question string) bool {
	yes, err := a.confirm(ctx, question+" [y/N] ", false)
	return err == nil && yes
}
