package cli

import (
	"context"
	"errors"

	"github.com/drawbridge-mcp/drawbridge/internal/cli/term"
)

// isInteractive reports whether a person can be asked at a terminal.
func (a *app) isInteractive() bool { return term.IsInteractive(a.In, a.Err) }

// startDialogue starts a dialogue, which the caller closes. It drops what was typed before: that was no answer to a
// question of this dialogue. It returns false without a terminal.
func (a *app) startDialogue(ctx context.Context) (*term.Dialogue, bool) {
	d, ok := term.StartDialogue(ctx, a.In, a.Err)
	if ok {
		_ = d.DiscardInput() // what stays there is what was typed
	}
	return d, ok
}

// confirm asks a yes-or-no question at the terminal. An empty answer means otherwise. The error reports that no
// terminal exists or no answer came.
func (a *app) confirm(ctx context.Context, question string, otherwise bool) (bool, error) {
	d, ok := a.startDialogue(ctx)
	if !ok {
		return false, errors.New("no terminal to ask at")
	}
	defer d.Close()
	return d.Confirm(question, otherwise)
}

// confirmDefaultNo asks a yes-or-no question. Any answer that is not a clear yes means no; so does the end of ctx.
func (a *app) confirmDefaultNo(ctx context.Context, question string) bool {
	yes, err := a.confirm(ctx, question+" [y/N] ", false)
	return err == nil && yes
}
