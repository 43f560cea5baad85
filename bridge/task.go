package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/hop"
	"github.com/drawbridge-mcp/drawbridge/bridge/link"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A server of 2025-11-25 may have tools that are only to be had as tasks: the caller asks for a task, and fetches its
// result later. A caller who asks for none, because it knows of none or speaks the other generation, gets a plain answer
// all the same: we ask for the task, and wait for its result.

// needsTask says whether a call has to ask for a task and does not. That a tool wants one counts only where its server
// says that calls may: so the specification.
func (s *session) needsTask(call drawbridge.Call) bool {
	if s.era != drawbridge.Legacy || call.Method != wire.MethodToolsCall {
		return false
	}
	s.e.mu.Lock()
	only := s.e.tools.OnlyTasks
	s.e.mu.Unlock()
	return len(only) > 0 && only[wire.GetText(call.Params, "name")] && wire.Get(call.Params, "task") == nil &&
		wire.Get(s.capabilities, "tasks", "requests", "tools", "call") != nil
}

// answer carries a call over the session and gives its answer, by way of a task where there is no other.
func (s *session) answer(ctx context.Context, call drawbridge.Call) (json.RawMessage, error) {
	if !s.needsTask(call) {
		return s.do(ctx, call)
	}
	if call.Peer != nil {
		call.Peer = untasked{call.Peer}
	}
	fetch := call
	call.Params = wire.Apply(call.Params, wire.Put(json.RawMessage(`{}`), "task"))
	created, err := s.do(ctx, call)
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
	result, err := s.do(ctx, fetch)
	switch {
	case neverArrived(err): // but the call of the tool did
		s.lose(err)
		return nil, fmt.Errorf("%w: fetch the result of its task: %s", link.ErrLost, err)
	case err != nil:
		if !answered(err) {
			s.abandon(ctx, id)
		}
		return nil, err
	}
	return withoutTask(result), nil
}

// abandonTime bounds what a caller waits for whose call is over.
const abandonTime = 2 * time.Second

// abandon cancels a task whose result nobody waits for any more, where the server lets it.
func (s *session) abandon(ctx context.Context, id json.RawMessage) {
	if wire.Get(s.capabilities, "tasks", "cancel") == nil || s.over() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTime)
	defer cancel()
	if _, err := s.request(ctx, wire.MethodTasksCancel, wire.Apply(nil, wire.Put(id, "taskId"))); err != nil {
		s.e.log.Debug("a task outlives its call", "error", err)
	}
}

// untasked is the caller's half of a conversation about a task that the caller knows nothing of.
type untasked struct{ drawbridge.Peer }

// Notify passes on what the server says, and Ask what it asks, but for which task it belongs to.
func (p untasked) Notify(ctx context.Context, method string, params json.RawMessage) error {
	return p.Peer.Notify(ctx, method, withoutTask(params))
}

func (p untasked) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return p.Peer.Ask(ctx, method, withoutTask(params))
}

func withoutTask(object json.RawMessage) json.RawMessage {
	if !bytes.Contains(object, []byte("related-task")) {
		return object
	}
	return hop.WithoutMeta(object, wire.MetaRelatedTask)
}
