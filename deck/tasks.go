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

// A call may outlive its answer: it becomes a task, which is asked after, answered and cancelled by its id. There are
// two forms, and they do not mix: the extension of the modern generation (SEP-2663), where the server decides, and the
// experiment of 2025-11-25, where the caller does. A task passes between a caller and a server that speak the same
// form. In the mixed cells there are none: a server of the other form is asked in a way that it answers plainly. A
// tool of 2025-11-25 that is only to be had as a task is the upstream's business: who asks for none gets a plain
// answer.

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

// taskFormOf is the form of tasks that a caller knows.
func taskFormOf(caller drawbridge.Caller) idKind {
	if caller.Era == drawbridge.Modern {
		return modernTaskID
	}
	return legacyTaskID
}

// checkTaskMethod says why a caller may not use a method of tasks: nobody whom they may know of has tasks of their
// form, or they did not say that they know of them, which the modern form wants in every request.
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

// hasTasks says whether a server that the caller may know of has tasks of their form, or may yet turn out to.
func (v *view) hasTasks(caller drawbridge.Caller) bool {
	for _, m := range v.servers {
		if v.mayKnowServer(caller, m) && (m.listing == nil || m.taskCapabilities(caller) != nil) {
			return true
		}
	}
	return false
}

// taskCapabilities is what a server declares of tasks in the caller's form: nil where it has none.
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

// allTaskCapabilities are what the servers that the caller may know of offer of tasks. A stateful caller is told only
// once, and so is promised what a server may offer that was never listed.
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

// WatchTask has the caller told of what changes about a task, by events that have its id. The error is a
// *drawbridge.Fault for a task that the caller may not ask after. Each call of it wants one of UnwatchTask.
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

// UnwatchTask ends what WatchTask began. Of a task that is not watched it is no error.
func (d *Deck) UnwatchTask(ctx context.Context, caller drawbridge.Caller, id string) error {
	return d.removeSubscriptions(ctx, caller, topicTask, id)
}

// forwardTaskUpdate tells those whose task it is what a server says of it: in the modern form those who watch it, in
// the legacy one, where nobody asks for that, all who are known to have it.
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
