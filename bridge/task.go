package bridge

import (
	"context"
	"encoding/json"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/hop"
	"github.com/drawbridge-mcp/drawbridge/bridge/remote"
	"github.com/drawbridge-mcp/drawbridge/bridge/talk"
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
	lost := func(err error) bool {
		if neverArrived(err) {
			s.lose(err)
			return true
		}
		return false
	}
	return talk.Tasked{Do: s.do, Lost: lost, Answered: remote.Answered, Plain: hop.WithoutTask, Abandon: s.abandon}.Answer(ctx, call)
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
