// Package term asks questions at a terminal and reads the answers. It writes nothing where no terminal is connected, and
// it restores the terminal's state when a dialogue is closed.
package term

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A Dialogue asks a person at a terminal: questions go to standard error, answers come from standard input. Ctrl-C and
// Ctrl-D end a question without an answer. The dialogue controls the terminal until it is closed.
type Dialogue struct {
	ctx      context.Context // the command's: a wait for an answer ends with it
	terminal *term.Terminal
	keys     *KeyReader
	fd       int
	before   *term.State
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// IsInteractive reports whether a person can be asked: in and out are both terminals.
func IsInteractive(in io.Reader, out io.Writer) bool { return IsTerminal(in) && IsTerminal(out) }

// StartDialogue begins a dialogue, which the caller closes. It returns false where in or out is not a terminal.
func StartDialogue(ctx context.Context, in io.Reader, out io.Writer) (*Dialogue, bool) {
	return NewKeyReader(in).StartDialogue(ctx, out)
}

// StartDialogue begins one of several dialogues on the same input. Keys that this dialogue read before ctx ended are
// not passed to a later one.
func (k *KeyReader) StartDialogue(ctx context.Context, out io.Writer) (*Dialogue, bool) {
	if !IsInteractive(k.in, out) {
		return nil, false
	}
	fd := int(k.in.(*os.File).Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return nil, false
	}
	terminal := term.NewTerminal(dialogueTerminal{out, ctx, k}, "")
	if width, height, err := term.GetSize(fd); err == nil && width > 0 {
		_ = terminal.SetSize(width, height) // a wrong size only wraps lines elsewhere
	}
	return &Dialogue{ctx, terminal, k, fd, before}, true
}

// Close restores the terminal's state.
func (d *Dialogue) Close() { _ = term.Restore(d.fd, d.before) }

// DiscardInput drops earlier input, which cannot answer a question that was not shown yet. After an error the input
// may still be there.
func (d *Dialogue) DiscardInput() error {
	err := flushInput(d.fd)
	d.keys.discard()
	return err
}

// Ask asks a question and returns the answer. The error means that no answer came.
func (d *Dialogue) Ask(question string) (string, error) {
	d.terminal.SetPrompt(safetext.Text(question))
	return d.readAnswer(d.terminal.ReadLine)
}

// AskHidden is Ask for an answer that is not shown.
func (d *Dialogue) AskHidden(question string) (string, error) {
	return d.readAnswer(func() (string, error) { return d.terminal.ReadPassword(safetext.Text(question)) })
}

// readAnswer waits for an answer, until the dialogue's context ends.
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
func (d *Dialogue) Say(text string) { fmt.Fprintln(d.terminal, safetext.Text(text)) }

// Confirm asks a yes-or-no question. An empty answer means otherwise.
func (d *Dialogue) Confirm(question string, otherwise bool) (bool, error) {
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
