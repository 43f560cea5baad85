package deck

import (
	"context"
	"errors"
	"iter"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// A WritingCard is a card that writes to the workspace: its Spec has a Crossing. It prepares changes, and cannot write
// itself: the deck hands them to the boundary.
type WritingCard interface {
	drawbridge.Card
	// Prepare returns what the call asks to write. An error is one of Run.
	Prepare(ctx context.Context, call drawbridge.Call) (PreparedWrite, error)
}

// A PreparedWrite is what a card asks to write.
type PreparedWrite struct {
	// Batches are changes that are written together: all of a batch, or none. An error ends the write; what was written
	// before stays. Nil writes nothing.
	Batches iter.Seq2[[]workspace.Change, error]
	// Lifecycle is that of the new content; empty means the default of the caller.
	Lifecycle workspace.Lifecycle
	// Result returns the result of the call. receipts has one for each change.
	Result func(receipts []workspace.Receipt) (drawbridge.Result, error)
}

// A Boundary writes to the workspace.
type Boundary interface {
	// Cross writes changes that a call of a card has prepared, in one transaction. The error is a *drawbridge.Fault.
	Cross(ctx context.Context, call drawbridge.Call, spec drawbridge.Spec, p PreparedWrite, changes []workspace.Change) (
		[]workspace.Receipt, error)
}

// crossBoundary carries out a call of a card that writes to the workspace.
func (d *Deck) crossBoundary(ctx context.Context, t callTarget, call drawbridge.Call) (drawbridge.Result, error) {
	card, ok := t.card.(WritingCard)
	if !ok || d.boundary == nil {
		return drawbridge.Result{}, &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.ServerError,
			Step: "write to the workspace", Err: errors.New("no workspace is open"), Next: "run: drawbridge workspace init"}
	}
	p, err := card.Prepare(ctx, call)
	if err != nil {
		return drawbridge.Result{}, err
	}
	var receipts []workspace.Receipt
	if p.Batches != nil {
		for changes, err := range p.Batches {
			if err != nil {
				return drawbridge.Result{}, err
			}
			written, err := d.boundary.Cross(ctx, call, t.spec, p, changes)
			if err != nil {
				return drawbridge.Result{}, err
			}
			receipts = append(receipts, written...)
		}
	}
	return p.Result(receipts)
}

// withoutProof returns a caller as guards and interceptors see it: they cannot act in its name.
func withoutProof(c drawbridge.Caller) drawbridge.Caller {
	c.Proof = nil
	return c
}
