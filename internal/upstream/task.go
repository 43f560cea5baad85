package upstream

import (
	"context"
	"encoding/json"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/interop"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// A server of 2025-11-25 may have tools that are only to be had as tasks: the caller asks for a task, and fetches its
// result later. A caller who asks for none, because it knows of none or speaks the other generation, gets a plain
// answer all the same: we ask for the task, and wait for its result.

// needsTask says whether a call has to ask for a task and does not. That a tool wants one counts only where its server
// says that calls may: so the specification.
func (s *session) needsTask(call drawbridge.Call) bool {
	if s.era != drawbridge.Legacy || call.Method != mcp.MethodToolsCall {
		return false
	}
	s.server.mu.Lock()
	only := s.server.tools.TaskOnly
	s.server.mu.Unlock()
	return len(only) > 0 && only[rawjson.GetString(call.Params, "name")] && rawjson.Get(call.Params, "task") == nil &&
		rawjson.Get(s.capabilities, "tasks", "requests", "tools", "call") != nil
}

// callTask carries a call over the session and gives its answer, by way of a task where there is no other.
func (s *session) callTask(ctx context.Context, call drawbridge.Call) (json.RawMessage, error) {
	if !s.needsTask(call) {
		return s.roundTrip(ctx, call)
	}
	lost := func(err error) bool {
		if isUndelivered(err) {
			s.markLost(err)
			return true
		}
		return false
	}
	return interop.TaskCaller{Do: s.roundTrip, OnLost: lost, IsServerResponse: transport.IsServerResponse,
		StripTask: interop.StripRelatedTask, CancelTask: s.cancelTask}.CallAsTask(ctx, call)
}

// taskCancelTimeout bounds what a caller waits for whose call is over.
const taskCancelTimeout = 2 * time.Second

// cancelTask cancels a task whose result nobody waits for any more, where the server lets it.
func (s *session) cancelTask(ctx context.Context, id json.RawMessage) {
	if rawjson.Get(s.capabilities, "tasks", "cancel") == nil || s.isOver() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), taskCancelTimeout)
	defer cancel()
	if _, err := s.sendRequest(ctx, mcp.MethodTasksCancel, rawjson.Apply(nil, rawjson.Put(id, "taskId"))); err != nil {
		s.server.log.Debug("a task outlives its call", "error", err)
	}
}
