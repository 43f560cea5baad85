package deck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A call may outlive its response: it becomes a task, which is polled, answered and cancelled by its id. There are two
// forms: the modern extension (SEP-2663), in which the server decides, and the experiment of 2025-11-25, in which the
// caller does. Tasks work only between a caller and a server of the same form; a server of the other form is called so
// that it answers without a task. The upstream handles tools of 2025-11-25 that only run as tasks: a caller who
// requested no task gets a plain answer.

// taskKind is the kind of a task for guards and records.
const taskKind = "task"

// resolveTask finds the task that a request is about.
func (d *Deck) resolveTask(_ context.Context, s *callState) error {
	if err := d.checkTaskMethod(s.call.Caller, s.call.Method); err != nil {
		return err
	}
	parts, err := pickMembers(s.call.Method, s.call.Params, "taskId")
	if err != nil {
		return err
	}
	id, ok := rawjson.DecodeString(parts[0])
	if !ok {
		return invalidParamsFault(s.call.Method, errors.New("params have no taskId"))
	}
	return d.findTask(s, id)
}

// findTask sets the target to the task with the sealed id, if the caller may ask for it.
func (d *Deck) findTask(s *callState, id string) error {
	t, ok := d.sealer.openID(s.call.Caller.Principal, id, taskFormOf(s.call.Caller))
	v := d.view.Load()
	m := v.server(t.Server)
	// a listed server without the capability has no tasks any more
	if !ok || m == nil || !v.mayKnowServer(s.call.Caller, m) || m.listing != nil &&
		m.taskCapabilities(s.call.Caller) == nil {
		return unknownNameFault("task", id)
	}
	k := d.taskTranslatorFor(m, s.call.Caller)
	s.tasks = &k
	s.target = callTarget{kind: taskKind, ownName: t.Own, spec: drawbridge.Spec{
		Name: drawbridge.CardName(id), Server: t.Server, Tool: t.Own, Scopes: m.scopes}}
	return nil
}

// rememberHolder remembers that the caller's principal holds the task of the call.
func (d *Deck) rememberHolder(s *callState) {
	t := sealedID{Kind: taskFormOf(s.call.Caller), Server: s.target.spec.Server, Own: s.target.ownName}
	d.taskHolders.Add(s.call.Caller.Principal, t, string(s.target.spec.Name))
}

// rewriteTaskParams turns the request about a task into the one that the server gets, with its own task ids.
func (d *Deck) rewriteTaskParams(_ context.Context, s *callState) error {
	d.rememberHolder(s)
	s.sent = s.call
	edits := append(s.tasks.requestEdits(s.call.Params), rawjson.Put(rawjson.Quote(s.target.ownName), "taskId"))
	s.sent.Params = rawjson.Apply(s.call.Params, edits...)
	s.sent.Peer = s.tasks.wrapPeer(s.call.Peer)
	return nil
}

// restoreTaskIDs turns the task ids and links of the result into the caller's.
func (d *Deck) restoreTaskIDs(_ context.Context, s *callState) error {
	s.result.Raw = d.rewriteLinks(s.call.Caller, s.call.Method, s.target.spec.Server,
		s.tasks.rewriteResponse(s.result.Raw))
	if s.call.Method != mcp.MethodTasksResult { // that is the result of the tool, whose members are its own
		s.result.Raw = s.tasks.rewriteID(s.result.Raw, "taskId")
	}
	return nil
}

// taskFormOf returns the form of tasks of a caller's protocol.
func taskFormOf(caller drawbridge.Caller) idKind {
	if caller.Era == drawbridge.Modern {
		return modernTaskID
	}
	return legacyTaskID
}

// checkTaskMethod returns the fault if a caller may not use a method of tasks. Some visible server must have tasks of
// the caller's form. A modern caller must also declare the extension in every request.
func (d *Deck) checkTaskMethod(caller drawbridge.Caller, method string) error {
	known := false
	switch method {
	case mcp.MethodTasksGet, mcp.MethodTasksCancel:
		known = true
	case mcp.MethodTasksUpdate:
		known = caller.Era == drawbridge.Modern
	case mcp.MethodTasksResult, mcp.MethodTasksList:
		known = caller.Era != drawbridge.Modern
	}
	if !known || !d.view.Load().hasTasks(caller) {
		return methodNotFoundFault(method)
	}
	if caller.Era == drawbridge.Modern && rawjson.Get(caller.Capabilities, "extensions", mcp.ExtensionTasks) == nil {
		data := `{"requiredCapabilities":{"extensions":{"` + mcp.ExtensionTasks + `":{}}}}`
		return &drawbridge.Fault{
			Kind: drawbridge.BridgeFault, Code: drawbridge.InvalidInput, Step: method,
			Err: errors.New("the client did not declare the tasks extension"),
			Raw: mcp.NewErrorObject(mcp.CodeMissingCapability, "Missing client capability: "+mcp.ExtensionTasks,
				json.RawMessage(data)),
		}
	}
	return nil
}

// hasTasks reports whether a visible server has tasks of the caller's form, or may have them once it is listed.
func (v *view) hasTasks(caller drawbridge.Caller) bool {
	for _, m := range v.servers {
		if v.mayKnowServer(caller, m) && (m.listing == nil || m.taskCapabilities(caller) != nil) {
			return true
		}
	}
	return false
}

// taskCapabilities returns the server's task capabilities in the caller's form; nil if it has none.
func (m *serverState) taskCapabilities(caller drawbridge.Caller) json.RawMessage {
	switch {
	case m.listing == nil || !bytes.Contains(m.listing.Capabilities, []byte("tasks")):
		return nil
	case caller.Era == drawbridge.Modern:
		if !m.listing.Era.Has(drawbridge.Modern) {
			return nil
		}
		return rawjson.Get(m.listing.Capabilities, "extensions", mcp.ExtensionTasks)
	case m.listing.Era.Has(drawbridge.Legacy):
		return rawjson.Get(m.listing.Capabilities, "tasks")
	}
	return nil
}

// allTaskCapabilities returns the task capabilities of the visible servers. A stateful caller is told only once, so a
// server that was never listed counts as having all of them.
func (v *view) allTaskCapabilities(caller drawbridge.Caller) (offers []json.RawMessage) {
	for _, m := range v.servers {
		if v.mayKnowServer(caller, m) {
			offers = append(offers, m.taskCapabilities(caller))
			if m.listing == nil {
				offers[len(offers)-1] = presumedTaskCapabilities(caller)
			}
		}
	}
	return offers
}

// WatchTask subscribes the caller to changes of a task; events carry its id. The error is a *drawbridge.Fault for a
// task that the caller may not access. Each call needs one UnwatchTask.
func (d *Deck) WatchTask(ctx context.Context, caller drawbridge.Caller, id string) error {
	if err := d.checkTaskMethod(caller, mcp.MethodTasksGet); err != nil {
		return err
	}
	call := drawbridge.Call{
		Caller: caller, Method: mcp.MethodTasksGet, Params: rawjson.Apply(nil,
			rawjson.Put(rawjson.Quote(id), "taskId")),
	}
	ctx, entry := d.callLog.Begin(ctx, call)
	s := &callState{call: call, log: entry}
	err := d.findTask(s, id)
	if err == nil {
		err = d.authorize(ctx, s)
	}
	if err == nil {
		d.rememberHolder(s)
		_, err = d.addSubscriptions(ctx, s.target.spec.Server, watchRequest{subscription{Principal: caller.Principal,
			Session: caller.Session, Topic: topicTask, Public: id}, s.target.ownName})
	}
	return entry.End(drawbridge.Result{}, err)
}

// UnwatchTask ends a subscription of WatchTask. A task that is not watched is not an error.
func (d *Deck) UnwatchTask(ctx context.Context, caller drawbridge.Caller, id string) error {
	return d.removeSubscriptions(ctx, caller, topicTask, id)
}

// forwardTaskUpdate forwards a server's notification about a task. In the modern form it goes to the principals that
// watch the task. In the legacy form, which has no subscription, it goes to all who hold it.
func (d *Deck) forwardTaskUpdate(m *serverState, n drawbridge.ServerNotification, hidden func(drawbridge.Caller) bool) {
	own := rawjson.GetString(n.Params, "taskId")
	form, to := modernTaskID, d.subscriptions.taskWatchers
	if n.Method == mcp.NoteTaskStatus {
		form, to = legacyTaskID, func(server drawbridge.ServerID, own string) map[string]string {
			return d.taskHolders.principalsByID(sealedID{Kind: legacyTaskID, Server: server, Own: own})
		}
	}
	said := n.Params
	for text, principal := range to(n.Server, own) {
		k := taskTranslator{deck: d, principal: principal, server: n.Server, perPrincipal: m.PerPrincipal, form: form}
		params, ok := k.rewriteNotification(said)
		if !ok {
			continue
		}
		n.Params = rawjson.Apply(params, rawjson.Put(rawjson.Quote(text), "taskId"))
		d.listeners.notify(Event{Kind: TaskChanged, Task: text, Principal: principal, Notification: n,
			HiddenFrom: hidden})
	}
}
