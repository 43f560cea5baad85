package cli

import (
	"context"
	"errors"

	"github.com/drawbridge-mcp/drawbridge/internal/cli/terminal"
)

// asks says whether there is a person who can be asked.
func (a *app) asks() bool { return terminal.Asks(a.In, a.Err) }

// dialogue begins one; false where nobody is there. It is to be closed.
func (a *app) dialogue(ctx context.Context) (*terminal.Dialogue, bool) {
	return terminal.Begin(ctx, a.In, a.Err)
}

// confirm asks for a yes at the terminal. An empty answer is otherwise; so is every other where nobody is there.
func (a *app) confirm(ctx context.Context, question string, otherwise bool) (bool, error) {
	d, ok := a.dialogue(ctx)
	if !ok {
		return false, errors.New("there is nobody to ask")
	}
	defer d.Close()
	return d.Confirm(question, otherwise)
}

// agrees asks a yes-or-no question. Whatever is not a clear yes is a no, and so is the end of ctx.
func (a *app) agrees(ctx context.Context, question string) bool {
	yes, err := a.confirm(ctx, question+" [y/N] ", false)
	return err == nil && yes
}
