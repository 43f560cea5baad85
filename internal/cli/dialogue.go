package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/tui"
)

// A person answers questions where there is no terminal, such as in a session of the agent. The input of a process may
// be one.
type person interface {
	ask(ctx context.Context, question string, kind tui.ReplyKind) (string, error)
	say(text string)
}

// A Dialogue asks a person questions at a terminal and reads the answers. Ctrl-C ends a question with the error io.EOF,
// and so does Ctrl-D on an empty line. The dialogue controls the terminal until it is closed.
type Dialogue struct {
	ctx      context.Context // context of the command; its end also ends a wait for an answer
	terminal *term.Terminal
	person   person // answers in place of the terminal; nil if there is a terminal
	keys     *KeyReader
	fd       int
	before   *term.State
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// IsInteractive reports whether a person can answer a question: in and out are both terminals, or in is a session.
func IsInteractive(in io.Reader, out io.Writer) bool {
	_, answers := in.(person)
	return answers || IsTerminal(in) && IsTerminal(out)
}

// StartDialogue starts a dialogue, which the caller must close. It returns false unless IsInteractive
// reports true.
func StartDialogue(ctx context.Context, in io.Reader, out io.Writer) (*Dialogue, bool) {
	return NewKeyReader(in).StartDialogue(ctx, out)
}

// StartDialogue starts a dialogue that reads the keys of k. It returns false unless IsInteractive reports true for the
// input of k and out. Several dialogues may use k, one after the other. A key that a dialogue has not read is passed to
// the next dialogue; keys of an unfinished answer are lost.
func (k *KeyReader) StartDialogue(ctx context.Context, out io.Writer) (*Dialogue, bool) {
	if !IsInteractive(k.in, out) {
		return nil, false
	}
	if p, ok := k.in.(person); ok {
		return &Dialogue{ctx: ctx, person: p}, true
	}
	fd := int(k.in.(*os.File).Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return nil, false
	}
	terminal := term.NewTerminal(dialogueTerminal{out, ctx, k}, "")
	if width, height, err := term.GetSize(fd); err == nil && width > 0 {
		_ = terminal.SetSize(width, height) // a wrong size only changes where lines wrap
	}
	return &Dialogue{ctx: ctx, terminal: terminal, keys: k, fd: fd, before: before}, true
}

// Close restores the terminal's state.
func (d *Dialogue) Close() {
	if d.person == nil {
		_ = term.Restore(d.fd, d.before)
	}
}

// DiscardInput drops the input that was typed before the call, so that it cannot answer the next question. After an
// error, some of that input may not be dropped.
func (d *Dialogue) DiscardInput() error {
	if d.person != nil {
		return nil // a session takes no key for an answer that was typed before the question
	}
	err := flushInput(d.fd)
	d.keys.discard()
	return err
}

// Ask prints a question and returns the answer. An error means that there was no answer.
func (d *Dialogue) Ask(question string) (string, error) {
	if d.person != nil {
		return d.person.ask(d.ctx, question, tui.ReplyLine)
	}
	d.terminal.SetPrompt(safetext.Text(question))
	return d.readAnswer(d.terminal.ReadLine)
}

// AskHidden is like Ask, but the terminal does not show the answer.
func (d *Dialogue) AskHidden(question string) (string, error) {
	if d.person != nil {
		return d.person.ask(d.ctx, question, tui.ReplySecret)
	}
	return d.readAnswer(func() (string, error) { return d.terminal.ReadPassword(safetext.Text(question)) })
}

// readAnswer calls read and returns the line. If the dialogue's context has ended, it returns the error of the context.
func (d *Dialogue) readAnswer(read func() (string, error)) (string, error) {
	line, err := read()
	if d.ctx.Err() != nil {
		return "", d.ctx.Err()
	}
	if errors.Is(err, term.ErrPasteIndicator) {
		err = nil
	}
	return line, err
}

// Say prints a text of one or more lines.
func (d *Dialogue) Say(text string) {
	if d.person != nil {
		d.person.say(text)
		return
	}
	fmt.Fprintln(d.terminal, safetext.Text(text))
}

// Confirm asks a question until the answer is yes, no or empty. For an empty answer it returns the value of otherwise. The
// question has no keys: a terminal shows them after it, and a session shows its own.
func (d *Dialogue) Confirm(question string, otherwise bool) (bool, error) {
	if d.person != nil {
		answer, err := d.person.ask(d.ctx, question, tui.ReplyYesNo)
		return answer == "y", err
	}
	keys := " [y/N] "
	if otherwise {
		keys = " [Y/n] "
	}
	for {
		line, err := d.Ask(question + keys)
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
