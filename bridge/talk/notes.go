package talk

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// What may wait for the next request of a talk, or for a slow one: so many notifications, with so many bytes together.
const (
	maxKept      = 256
	maxKeptBytes = 256 << 10
)

// A note is something that the server said.
type note struct {
	method string
	params json.RawMessage
}

func (n note) size() int { return len(n.method) + len(n.params) }

// A backlog is what was said and not yet delivered, in its order. Its talk's mu guards it.
type backlog struct {
	notes []note
	bytes int
	// moved is closed, and another takes its place, when there is room again or nobody listens any more.
	moved chan struct{}
}

func (b *backlog) fits(n note) bool {
	return len(b.notes) < maxKept && b.bytes+n.size() <= maxKeptBytes
}

func (b *backlog) add(n note) {
	b.notes = append(b.notes, n)
	b.bytes += n.size()
}

func (b *backlog) drop() {
	b.bytes -= b.notes[0].size()
	b.notes = slices.Delete(b.notes, 0, 1)
	b.stir()
}

func (b *backlog) stir() {
	close(b.moved)
	b.moved = make(chan struct{})
}

// Notify takes what the server says in the course of the call. It waits for a request that listens to make room; where none
// does, what is too much is dropped. The error says that the call, or ctx, has ended.
func (t *talk) Notify(ctx context.Context, method string, params json.RawMessage) error {
	n := note{method, params}
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.peer != nil && len(t.said.notes) > 0 && !t.said.fits(n) {
		if err := t.await(ctx, t.said.moved); err != nil {
			return err
		}
	}
	switch {
	case t.ctx.Err() != nil:
		return context.Cause(t.ctx)
	case t.peer == nil:
		t.keep(n)
	default:
		t.said.add(n)
		t.ring()
	}
	return nil
}

// await waits for moved without mu, which it needs before and after.
func (t *talk) await(ctx context.Context, moved <-chan struct{}) error {
	t.mu.Unlock()
	defer t.mu.Lock()
	select {
	case <-moved:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	}
}

// keep has a note wait for the next request, if that may want it and there is room. It needs mu.
func (t *talk) keep(n note) {
	if n.method == wire.NoteMessage && !t.logs || !t.said.fits(n) {
		return
	}
	n.params = bytes.Clone(n.params) // which may be a small part of a large message
	t.said.add(n)
}

// leave has the talk speak to nobody. What was not delivered waits for the next request.
func (t *talk) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.peer, t.token = nil, nil
	notes := t.said.notes
	t.said.notes, t.said.bytes = nil, 0
	for _, n := range notes {
		t.keep(n)
	}
	t.said.stir()
}

// deliver tells the request that waits what has been said. Only that request calls it, so that everything is told in its
// order, and only as much as there is when it begins, so that it ends.
func (t *talk) deliver(ctx context.Context) {
	t.mu.Lock()
	peer, token, count := t.peer, t.token, len(t.said.notes)
	t.mu.Unlock()
	for ; count > 0 && peer != nil && ctx.Err() == nil; count-- {
		t.mu.Lock()
		n := t.said.notes[0]
		t.mu.Unlock()
		if err := tell(ctx, peer, token, n); err != nil {
			t.line.Logger.Debug("a caller did not take a notification", "error", err)
			t.leave()
			return
		}
		t.mu.Lock()
		t.said.drop()
		t.mu.Unlock()
	}
}

// tell tells a request of a note: of progress if it gave a token, and under that.
func tell(ctx context.Context, peer drawbridge.Peer, token json.RawMessage, n note) error {
	if n.method == wire.NoteProgress {
		if token == nil {
			return nil
		}
		n.params = wire.Apply(n.params, wire.Put(token, wire.MetaProgressToken))
	}
	return peer.Notify(ctx, n.method, n.params)
}
