package interop

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// A TaskCaller is the way of calls to a server that has some of its tools only as tasks.
type TaskCaller struct {
	// Do sends a request of the call.
	Do func(context.Context, drawbridge.Call) (json.RawMessage, error)
	// OnLost says whether the error of a request means that it never arrived, and is told of one. Answered says
	// whether it is an answer of the server's.
	OnLost           func(error) bool
	IsServerResponse func(error) bool
	// StripTask takes out of an object which task it belongs to.
	StripTask func(object json.RawMessage) json.RawMessage
	// CancelTask cancels the task of an id whose result nobody waits for any more.
	CancelTask func(ctx context.Context, id json.RawMessage)
}

// CallAsTask carries a call whose caller asks for no task: we ask for one, and wait for its result.
func (t TaskCaller) CallAsTask(ctx context.Context, call drawbridge.Call) (json.RawMessage, error) {
	if call.Peer != nil {
		call.Peer = taskHidingPeer{call.Peer, t.StripTask}
	}
	fetch := call
	call.Params = rawjson.Apply(call.Params, rawjson.Put(json.RawMessage(`{}`), "task"))
	created, err := t.Do(ctx, call)
	if err != nil {
		return nil, err
	}
	id := rawjson.Get(created, "task", "taskId")
	if _, ok := rawjson.DecodeString(id); !ok {
		return created, nil // it has answered plainly after all
	}
	// tasks/result is answered when the task is over, and has the time of any other call.
	fetch.Method, fetch.Params = mcp.MethodTasksResult, rawjson.Apply(nil, rawjson.Put(id, "taskId"))
	if meta := mcp.MetaOf(call.Params); meta != nil {
		fetch.Params = rawjson.Apply(fetch.Params, rawjson.Put(meta, "_meta"))
	}
	result, err := t.Do(ctx, fetch)
	switch {
	case err == nil:
		return t.StripTask(result), nil
	case t.OnLost(err): // but the call of the tool was not
		return nil, fmt.Errorf("%w: fetch the result of its task: %s", transport.ErrLost, err)
	case !t.IsServerResponse(err):
		t.CancelTask(ctx, id)
	}
	return nil, err
}

// taskHidingPeer is the caller's half of a conversation about a task that the caller knows nothing of.
type taskHidingPeer struct {
	drawbridge.Peer
	stripTask func(json.RawMessage) json.RawMessage
}

// Notify passes on what the server says, and Ask what it asks, but for which task it belongs to.
func (p taskHidingPeer) Notify(ctx context.Context, method string, params json.RawMessage) error {
	return p.Peer.Notify(ctx, method, p.stripTask(params))
}

func (p taskHidingPeer) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return p.Peer.Request(ctx, method, p.stripTask(params))
}
