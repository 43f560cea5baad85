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

// A TaskCaller calls tools that can be called only as tasks.
type TaskCaller struct {
	// Do sends a request to the server and returns the result.
	Do func(context.Context, drawbridge.Call) (json.RawMessage, error)
	// OnLost is called with an error of Do. It reports whether the error means that the request did not reach the
	// server, and then marks the connection as lost. IsServerResponse reports whether an error is the server's
	// response.
	OnLost           func(error) bool
	IsServerResponse func(error) bool
	// StripTask returns an object without the related-task member.
	StripTask func(object json.RawMessage) json.RawMessage
	// CancelTask cancels a task whose result is no longer needed.
	CancelTask func(ctx context.Context, id json.RawMessage)
}

// CallAsTask calls a tool as a task, for a caller that did not ask for a task, and waits for the task's result.
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
		return created, nil // the server returned a plain result
	}
	// The server responds to tasks/result when the task has ended. The request has the same time limit as any other
	// call.
	fetch.Method, fetch.Params = mcp.MethodTasksResult, rawjson.Apply(nil, rawjson.Put(id, "taskId"))
	if meta := mcp.MetaOf(call.Params); meta != nil {
		fetch.Params = rawjson.Apply(fetch.Params, rawjson.Put(meta, "_meta"))
	}
	result, err := t.Do(ctx, fetch)
	switch {
	case err == nil:
		return t.StripTask(result), nil
	case t.OnLost(err): // but the tool's call arrived
		return nil, fmt.Errorf("%w: fetch the result of its task: %s", transport.ErrLost, err)
	case !t.IsServerResponse(err):
		t.CancelTask(ctx, id)
	}
	return nil, err
}

// taskHidingPeer is the Peer of a call that is made as a task. It removes the member that refers to the task from all
// messages, because the caller did not ask for a task.
type taskHidingPeer struct {
	drawbridge.Peer
	stripTask func(json.RawMessage) json.RawMessage
}

// Notify passes a notification on without its related-task member.
func (p taskHidingPeer) Notify(ctx context.Context, method string, params json.RawMessage) error {
	return p.Peer.Notify(ctx, method, p.stripTask(params))
}

func (p taskHidingPeer) Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return p.Peer.Request(ctx, method, p.stripTask(params))
}
