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

// A TaskCaller makes calls to tools that exist only as tasks.
type TaskCaller struct {
	// Do sends a request of the call.
	Do func(context.Context, drawbridge.Call) (json.RawMessage, error)
	// OnLost reports whether an error means that the request never arrived, and handles that. IsServerResponse reports
	// whether an error is the server's answer.
	OnLost           func(error) bool
	IsServerResponse func(error) bool
	// StripTask removes the related-task member from an object.
	StripTask func(object json.RawMessage) json.RawMessage
	// CancelTask cancels a task whose result is not wanted any more.
	CancelTask func(ctx context.Context, id json.RawMessage)
}

// CallAsTask makes a call as a task, for a caller that did not ask for one, and waits for its result.
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

// taskHidingPeer is the Peer of a call whose caller does not know the task.
type taskHidingPeer struct {
	drawbridge.Peer
	stripTask func(json.RawMessage) json.RawMessage
}

// Notify passes a notification on without its related task.
func (p taskHidingPeer) Notify(ctx context.Context, method string, params json.RawMessage) error {
	return p.Peer.Notify(ctx, method, p.stripTask(params))
}

func (p taskHidingPeer) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return p.Peer.Request(ctx, method, p.stripTask(params))
}
