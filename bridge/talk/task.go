package talk

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/link"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A Tasked is the way of calls to a server that has some of its tools only as tasks.
type Tasked struct {
	// Do sends a request of the call.
	Do func(context.Context, drawbridge.Call) (json.RawMessage, error)
	// Lost says whether the error of a request means that it never arrived, and is told of one. Answered says whether it is an
	// answer of the server's.
	Lost     func(error) bool
	Answered func(error) bool
	// Plain takes out of an object which task it belongs to.
	Plain func(object json.RawMessage) json.RawMessage
	// Abandon cancels the task of an id whose result nobody waits for any more.
	Abandon func(ctx context.Context, id json.RawMessage)
}

// Answer carries a call whose caller asks for no task: we ask for one, and wait for its result.
func (t Tasked) Answer(ctx context.Context, call drawbridge.Call) (json.RawMessage, error) {
	if call.Peer != nil {
		call.Peer = untasked{call.Peer, t.Plain}
	}
	fetch := call
	call.Params = wire.Apply(call.Params, wire.Put(json.RawMessage(`{}`), "task"))
	created, err := t.Do(ctx, call)
	if err != nil {
		return nil, err
	}
	id := wire.Get(created, "task", "taskId")
	if _, ok := wire.Text(id); !ok {
		return created, nil // it has answered plainly after all
	}
	// tasks/result is answered when the task is over, and has the time of any other call.
	fetch.Method, fetch.Params = wire.MethodTasksResult, wire.Apply(nil, wire.Put(id, "taskId"))
	if meta := wire.MetaOf(call.Params); meta != nil {
		fetch.Params = wire.Apply(fetch.Params, wire.Put(meta, "_meta"))
	}
	result, err := t.Do(ctx, fetch)
	switch {
	case err == nil:
		return t.Plain(result), nil
	case t.Lost(err): // but the call of the tool was not
		return nil, fmt.Errorf("%w: fetch the result of its task: %s", link.ErrLost, err)
	case !t.Answered(err):
		t.Abandon(ctx, id)
	}
	return nil, err
}

// untasked is the caller's half of a conversation about a task that the caller knows nothing of.
type untasked struct {
	drawbridge.Peer
	plain func(json.RawMessage) json.RawMessage
}

// Notify passes on what the server says, and Ask what it asks, but for which task it belongs to.
func (p untasked) Notify(ctx context.Context, method string, params json.RawMessage) error {
	return p.Peer.Notify(ctx, method, p.plain(params))
}

func (p untasked) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return p.Peer.Ask(ctx, method, p.plain(params))
}
