package cli

import (
	"context"
	"errors"

	"github.com/drawbridge-mcp/drawbridge/internal/cli/term"
)

// isInteractive reports whether there is a person who can be asked.
func (a *app) isInteractive() bool { return term.IsInteractive(a.In, a.Err) }

// startDialogue begins one; false where nobody is there. It is to be closed.
func (a *app) startDialogue(ctx context.Context) (*term.Dialogue, bool) {
	return term.StartDialogue(ctx, a.In, a.Err)
}

// confirm asks for a yes at the terminal. An empty answer is otherwise; so is every other where nobody is there.
func (a *app) confirm(ctx context.Context, question string, otherwise bool) (bool, error) {
	d, ok := a.startDialogue(ctx)
	if !ok {
		return false, errors.New("no terminal to ask at")
	}
	defer d.Close()
	return d.Confirm(question, otherwise)
}

// confirmDefaultNo asks a yes-or-no question. Whatever is not a clear yes is a no, and so is the end of ctx.
func (a *app) confirmDefaultNo(ctx context.Context, question string) bool {
	yes, err := a.confirm(ctx, question+" [y/N] ", false)
	return err == nil && yes
}
