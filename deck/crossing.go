package deck

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// MetaOrigin is a member of the "_meta" of a call. An outside client names in it the origin of the content that the call
// writes to the workspace. For a call of run_python, it is the origin of all that the script writes.
const MetaOrigin = "drawbridge/origin"

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
	// URIs returns the URIs of the resources that a write has changed, see [Options].Resources.
	URIs(ctx context.Context, r workspace.Receipt) []string
}

// crossBoundary carries out a call of a card that writes to the workspace.
func (d *Deck) crossBoundary(ctx context.Context, t callTarget, call drawbridge.Call) (drawbridge.Result, error) {
	card, ok := t.card.(WritingCard)
	boundary := d.boundary.Load()
	if !ok || boundary == nil {
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
			written, err := (*boundary).Cross(ctx, call, t.spec, p, changes)
			if err != nil {
				return drawbridge.Result{}, err
			}
			receipts = append(receipts, written...)
			d.tellSubscribers(ctx, written)
		}
	}
	return p.Result(receipts)
}

// tellSubscribers sends an event for each resource that writes have changed, if there are subscriptions to Drawbridge's
// own resources.
func (d *Deck) tellSubscribers(ctx context.Context, receipts []workspace.Receipt) {
	boundary := d.boundary.Load()
	if boundary == nil || !d.subscriptions.hasAny("") {
		return
	}
	for _, r := range receipts {
		for _, uri := range (*boundary).URIs(ctx, r) {
			d.listeners.notify(Event{Kind: ResourceUpdated, URI: uri})
		}
	}
}

// ownTemplate returns the item for a template of Drawbridge's own resources.
func ownTemplate(c drawbridge.Card) (*item, error) {
	spec := c.Spec()
	template, ok := naming.ParseTemplate(string(spec.Name))
	if !ok {
		return nil, &drawbridge.Fault{Kind: drawbridge.BuildFailed, Code: drawbridge.InvalidInput, Step: "make the deck",
			Err: fmt.Errorf("%q is not a template", spec.Name)}
	}
	return &item{kind: templates.word, spec: spec, offer: offeredItem{Name: string(spec.Name), Raw: spec.Definition},
		names: []drawbridge.CardName{spec.Name}, card: c, template: template}, nil
}

// withoutProof returns a caller as guards and interceptors see it: they cannot act in its name.
func withoutProof(c drawbridge.Caller) drawbridge.Caller {
	c.Proof = nil
	return c
}
