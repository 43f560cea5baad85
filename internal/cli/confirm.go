package cli

import (
	"context"
	"errors"
)

// isInteractive reports whether a person can be asked, at a terminal or in a session.
func (a *app) isInteractive() bool { return IsInteractive(a.In, a.Err) }

// startDialogue starts a dialogue with the person, which the caller must close. It drops the input that was typed before,
// because that input does not answer a question of this dialogue. It returns false if there is no person to ask.
func (a *app) startDialogue(ctx context.Context) (*Dialogue, bool) {
	d, ok := StartDialogue(ctx, a.In, a.Err)
	if ok {
		_ = d.DiscardInput() // on error, earlier input may answer a question
	}
	return d, ok
}

// confirm asks a yes-or-no question, as Dialogue.Confirm does. The error means that there is no person to ask, or that no
// answer could be read.
func (a *app) confirm(ctx context.Context, question string, otherwise bool) (bool, error) {
	d, ok := a.startDialogue(ctx)
	if !ok {
		return false, errors.New("no person to ask")
	}
	defer d.Close()
	return d.Confirm(question, otherwise)
}

// confirmDefaultNo asks a yes-or-no question. An empty line means no. It also returns false if there is no answer, for
// example because there is no person to ask.
func (a *app) confirmDefaultNo(ctx context.Context, question string) bool {
	yes, err := a.confirm(ctx, question, false)
	return err == nil && yes
}
