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

// A task is a call that continues after its response. The caller polls, answers and cancels the task by its ID. There
// are two forms. In the modern extension (SEP-2663) the server decides whether a call becomes a task. In the experiment
// of 2025-11-25 the caller decides. Tasks work only between a caller and a server with the same form. A server with the
// other form is called in such a way that it answers without a task. Some tools of 2025-11-25 can only run as tasks.
// For a caller that requested no task, the upstream runs the task and returns its result.

// taskKind is the kind of a task in questions to guards and in records.
const taskKind = "task"

// resolveTask finds the task that the params of a request name.
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

// findTask sets the target to the task with this sealed ID, if the caller may use the task.
func (d *Deck) findTask(s *callState, id string) error {
	t, ok := d.sealer.openID(s.call.Caller.Principal, id, taskFormOf(s.call.Caller))
	v := d.view.Load()
	m := v.server(t.Server)
	// A server with a listing but without the task capability has no tasks any more.
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

// rememberHolder stores that the caller's principal holds the task of the call.
func (d *Deck) rememberHolder(s *callState) {
	t := sealedID{Kind: taskFormOf(s.call.Caller), Server: s.target.spec.Server, Own: s.target.ownName}
	d.taskHolders.Add(s.call.Caller.Principal, t, string(s.target.spec.Name))
}

// rewriteTaskParams sets s.sent to the request for the server, with the server's own task IDs.
func (d *Deck) rewriteTaskParams(_ context.Context, s *callState) error {
	d.rememberHolder(s)
	s.sent = s.call
	edits := append(s.tasks.requestEdits(s.call.Params), rawjson.Put(rawjson.Quote(s.target.ownName), "taskId"))
	s.sent.Params = rawjson.Apply(s.call.Params, edits...)
	s.sent.Peer = s.tasks.wrapPeer(s.call.Peer)
	return nil
}

// restoreTaskIDs replaces the task IDs and links in the result with the caller's.
func (d *Deck) restoreTaskIDs(_ context.Context, s *callState) error {
	s.result.Raw = d.rewriteLinks(s.call.Caller, s.call.Method, s.target.spec.Server,
		s.tasks.rewriteResponse(s.result.Raw))
	if s.call.Method != mcp.MethodTasksResult { // the result of tasks/result is a tool's, and keeps its members
		s.result.Raw = s.tasks.rewriteID(s.result.Raw, "taskId")
	}
	return nil
}

// taskFormOf returns the form of tasks in the caller's protocol.
func taskFormOf(caller drawbridge.Caller) idKind {
	if caller.Era == drawbridge.Modern {
		return modernTaskID
	}
	return legacyTaskID
}

// checkTaskMethod returns a fault if the caller may not use a method of tasks. A visible server must have tasks of the
// caller's form. A modern caller must also declare the extension in every request.
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

// hasTasks reports whether a visible server has tasks of the caller's form, or has no listing yet and may have them.
func (v *view) hasTasks(caller drawbridge.Caller) bool {
	for _, m := range v.servers {
		if v.mayKnowServer(caller, m) && (m.listing == nil || m.taskCapabilities(caller) != nil) {
			return true
		}
	}
	return false
}

// taskCapabilities returns the server's task capabilities in the form of the caller's protocol; nil if the server has
// none.
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

// allTaskCapabilities returns the task capabilities of the visible servers. A server without a listing counts as having
// all of them, because a stateful caller requests the capabilities only once.
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

// WatchTask subscribes the caller to changes of a task. The events have the ID that the caller used. For a task that
// the caller may not access, it returns a *drawbridge.Fault. A caller without a session must call UnwatchTask as often
// as WatchTask.
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

// UnwatchTask removes a subscription that WatchTask added. A task without a subscription is not an error.
func (d *Deck) UnwatchTask(ctx context.Context, caller drawbridge.Caller, id string) error {
	return d.removeSubscriptions(ctx, caller, topicTask, id)
}

// forwardTaskUpdate forwards a server's notification about a task. In the modern form the notification is sent to the
// principals that watch the task. The legacy form has no subscriptions, so it is sent to all principals that hold the
// task.
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
