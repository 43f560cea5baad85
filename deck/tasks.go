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

// A task is a call that continues after the server has responded. The caller uses the ID of the task to poll its state,
// to send input, and to cancel it. There are two forms of tasks. In the modern extension (SEP-2663) the server decides
// whether a call becomes a task. In the experimental form of version 2025-11-25, the legacy form, the caller decides.
// Tasks work only between a caller and a server with the same form. For a server with the other form, the deck changes
// the request so that the server answers without a task. Some tools of 2025-11-25 can only run as tasks. If the caller
// requested no task, the upstream waits until the task has ended, and returns its result.

// taskKind is the value of [Question].Kind and of the kind in audit records for a task.
const taskKind = "task"

// resolveTask sets s.target to the task whose ID is in the params of a request.
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

// findTask sets s.target to the task with this sealed ID. It returns the fault for an unknown task if the ID was not
// sealed for the caller's principal and protocol generation. It returns the same fault if the server is unknown or
// hidden.
func (d *Deck) findTask(s *callState, id string) error {
	t, ok := d.sealer.openID(s.call.Caller.Principal, id, taskFormOf(s.call.Caller))
	if ok && t.Server == drawbridge.OwnServer {
		return d.findOwnTask(s, id, t)
	}
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

// rememberHolder stores in taskHolders that the caller's principal holds the task in s.target.
func (d *Deck) rememberHolder(s *callState) {
	t := sealedID{Kind: taskFormOf(s.call.Caller), Server: s.target.spec.Server, Own: s.target.ownName}
	d.taskHolders.Add(s.call.Caller.Principal, t, string(s.target.spec.Name))
}

// rewriteTaskParams sets s.sent to a copy of the request in which the sealed task IDs are replaced with the server's
// own IDs.
func (d *Deck) rewriteTaskParams(_ context.Context, s *callState) error {
	if !s.target.ownTask {
		d.rememberHolder(s)
	}
	s.sent = s.call
	edits := append(s.tasks.requestEdits(s.call.Params), rawjson.Put(rawjson.Quote(s.target.ownName), "taskId"))
	s.sent.Params = rawjson.Apply(s.call.Params, edits...)
	s.sent.Peer = s.tasks.wrapPeer(s.call.Peer)
	return nil
}

// restoreTaskIDs replaces the server's own task IDs and links in the result with sealed IDs and public URIs.
func (d *Deck) restoreTaskIDs(_ context.Context, s *callState) error {
	s.result.Raw = d.rewriteLinks(s.call.Caller, s.call.Method, s.target.spec.Server,
		s.tasks.rewriteResponse(s.result.Raw))
	if s.call.Method != mcp.MethodTasksResult { // the result of tasks/result is a tool's, and keeps its members
		s.result.Raw = s.tasks.rewriteID(s.result.Raw, "taskId")
	}
	return nil
}

// taskFormOf returns the kind of sealed task ID for the form of tasks in the caller's protocol.
func taskFormOf(caller drawbridge.Caller) idKind {
	if caller.Era == drawbridge.Modern {
		return modernTaskID
	}
	return legacyTaskID
}

// checkTaskMethod returns a fault unless the caller may use the method, which is a method for tasks. The method must
// exist in the caller's form of tasks, and a visible server must support this form. A modern caller must also declare
// the tasks extension in every request.
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
	if !known || !d.view.Load().hasTasks(caller) && d.offersOwnTask(caller) == nil {
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

// hasTasks reports whether a visible server supports tasks in the caller's form, or has no listing yet and may support
// them.
func (v *view) hasTasks(caller drawbridge.Caller) bool {
	for _, m := range v.servers {
		if v.mayKnowServer(caller, m) && (m.listing == nil || m.taskCapabilities(caller) != nil) {
			return true
		}
	}
	return false
}

// taskCapabilities returns the task capabilities that the server declares in the form of the caller's protocol; nil if
// it declares none.
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

// allTaskCapabilities returns the task capabilities of each visible server, in the form of the caller's protocol. For a
// server without a listing, it returns the result of presumedTaskCapabilities.
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

// WatchTask subscribes the caller to changes of the task with this sealed ID. The deck then sends [TaskChanged] events
// with the same ID. The error is a *drawbridge.Fault, for example for a task that does not belong to the caller's
// principal. A caller without a session must call UnwatchTask as often as WatchTask.
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
	if err == nil && s.target.ownTask {
		err = &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.InvalidInput, Step: "watch " + clipText(id),
			Err: errors.New("changes of this task are not sent"), Next: "call tasks/get"}
	}
	if err == nil {
		d.rememberHolder(s)
		_, err = d.addSubscriptions(ctx, s.target.spec.Server, watchRequest{subscription{Principal: caller.Principal,
			Session: caller.Session, Topic: topicTask, Public: id}, s.target.ownName})
	}
	return entry.End(drawbridge.Result{}, err)
}

// UnwatchTask removes the caller's subscription to a task. A task without a subscription is not an error.
func (d *Deck) UnwatchTask(ctx context.Context, caller drawbridge.Caller, id string) error {
	return d.removeSubscriptions(ctx, caller, topicTask, id)
}

// forwardTaskUpdate sends a TaskChanged event for a server's notification about a task, to each principal concerned.
// For a notification of the modern form, these are the principals that subscribed to the task. The legacy form has no
// subscriptions, so the event is sent to all principals that hold the task.
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
