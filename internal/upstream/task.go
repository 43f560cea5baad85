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

// A server of 2025-11-25 may have tools that must be called as tasks: the caller creates a task and fetches its result
// later. Some callers do not know tasks or use the other protocol era. For these callers Drawbridge creates the task
// and waits for its result.

// needsTask reports whether Drawbridge must create a task for a call: the tool requires a task and the call does not
// create one. By the specification, a tool's requirement counts only if its server declares task support for calls.
func (s *session) needsTask(call drawbridge.Call) bool {
	if s.era != drawbridge.Legacy || call.Method != mcp.MethodToolsCall {
		return false
	}
	only := s.server.listing.taskOnly()
	return len(only) > 0 && only[rawjson.GetString(call.Params, "name")] && rawjson.Get(call.Params, "task") == nil &&
		rawjson.Get(s.capabilities, "tasks", "requests", "tools", "call") != nil
}

// callTask makes a call on the session and returns its result. If the tool requires a task, callTask creates the task
// and waits for its result.
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

// taskCancelTimeout is the time limit for cancelling a task. The caller of the call waits for that.
const taskCancelTimeout = 2 * time.Second

// cancelTask cancels a task whose call has ended, if the server supports cancelling tasks.
func (s *session) cancelTask(ctx context.Context, id json.RawMessage) {
	if rawjson.Get(s.capabilities, "tasks", "cancel") == nil || s.isOver() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), taskCancelTimeout)
	defer cancel()
	if _, err := s.sendRequest(ctx, mcp.MethodTasksCancel, rawjson.Apply(nil, rawjson.Put(id, "taskId"))); err != nil {
		s.server.log.Debug("a task was not cancelled", "error", err)
	}
}
