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

// callTaskMethod carries out a request about a task.
func (d *Deck) callTaskMethod(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	if err := d.checkTaskMethod(call.Caller, call.Method); err != nil {
		return drawbridge.Result{}, err
	}
	if call.Method == mcp.MethodTasksList {
		return d.listTasks(ctx, call)
	}
	parts, err := pickMembers(call.Method, call.Params, "taskId")
	if err != nil {
		return drawbridge.Result{}, err
	}
	said, ok := rawjson.DecodeString(parts[0])
	if !ok {
		return drawbridge.Result{}, faultInvalid(call.Method, errors.New("params have no taskId"))
	}
	k, own, err := d.findTask(ctx, call, said)
	if err != nil {
		return drawbridge.Result{}, err
	}
	call.Params = rawjson.Apply(k.rewriteRequest(call.Params), rawjson.Put(rawjson.Quote(own), "taskId"))
	call.Peer = k.wrapPeer(call.Peer)
	pass := d.resultFilter(call, k.server, said, "task")
	result, err := d.upstream.Do(ctx, k.server, call)
	if err != nil {
		return drawbridge.Result{}, pass.ApplyToError(ctx, err)
	}
	result.Raw = d.rewriteLinks(call.Caller, call.Method, k.server, k.rewriteResponse(result.Raw))
	if call.Method != mcp.MethodTasksResult { // which is the result of the tool, and has members of its own
		result.Raw = k.rewriteID(result.Raw, "taskId")
	}
	result.Raw, err = pass.Apply(ctx, result.Raw)
	return result, err
}

// findTask gives the server of a task and its own id, where the caller may ask after it.
func (d *Deck) findTask(ctx context.Context, call drawbridge.Call, said string) (k taskTranslator,
	own string, err error) {
	t, ok := d.sealer.openID(call.Caller.Principal, said, taskFormOf(call.Caller))
	v := d.view.Load()
	m := v.server(t.Server)
	// it has none any more
	if !ok || m == nil || !v.mayKnowServer(call.Caller, m) || m.listing != nil &&
		m.taskCapabilities(call.Caller) == nil {
		return taskTranslator{}, "", faultUnknown("task", said)
	}
	spec := drawbridge.Spec{Name: drawbridge.CardName(said), Server: t.Server, Tool: t.Own, Scopes: m.scopes}
	if err := d.authorizeCall(ctx, call, "task", spec); err != nil {
		return taskTranslator{}, "", err
	}
	d.taskHolders.Add(call.Caller.Principal, t, said)
	return d.taskTranslatorFor(m, call.Caller), t.Own, nil
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
		return faultNoMethod(method)
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
	k, own, err := d.findTask(ctx, call, id)
	if err == nil {
		_, err = d.addSubscriptions(ctx, k.server, watchRequest{subscription{Principal: caller.Principal,
			Session: caller.Session, Topic: topicTask, Public: id}, own})
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
