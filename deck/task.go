package deck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck/declare"
	"github.com/drawbridge-mcp/drawbridge/deck/params"
	"github.com/drawbridge-mcp/drawbridge/deck/seal"
	"github.com/drawbridge-mcp/drawbridge/deck/vigil"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A call may outlive its answer: it becomes a task, which is asked after, answered and cancelled by its id. There are two
// forms, and they do not mix: the extension of the modern generation (SEP-2663), where the server decides, and the
// experiment of 2025-11-25, where the caller does. A task passes between a caller and a server that speak the same form.
// In the mixed cells there are none: a server of the other form is asked in a way that it answers plainly. A tool of
// 2025-11-25 that is only to be had as a task is the upstream's business: who asks for none gets a plain answer.

// doTask carries out a request about a task.
func (d *Deck) doTask(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	if err := d.mayTask(call.Caller, call.Method); err != nil {
		return drawbridge.Result{}, err
	}
	if call.Method == wire.MethodTasksList {
		return d.listTasks(ctx, call)
	}
	parts, err := params.Pick(call.Method, call.Params, "taskId")
	if err != nil {
		return drawbridge.Result{}, err
	}
	said, ok := wire.Text(parts[0])
	if !ok {
		return drawbridge.Result{}, invalid(call.Method, errors.New("params have no taskId"))
	}
	k, own, err := d.findTask(ctx, call, said)
	if err != nil {
		return drawbridge.Result{}, err
	}
	call.Params = wire.Apply(k.inward(call.Params), wire.Put(wire.Quote(own), "taskId"))
	call.Peer = k.peer(call.Peer)
	pass := d.passing(call, k.server, said, "task")
	result, err := d.up.Do(ctx, k.server, call)
	if err != nil {
		return drawbridge.Result{}, pass.Fail(ctx, err)
	}
	result.Raw = d.linked(call.Caller, call.Method, k.server, k.outward(result.Raw))
	if call.Method != wire.MethodTasksResult { // which is the result of the tool, and has members of its own
		result.Raw = k.renamed(result.Raw, "taskId")
	}
	result.Raw, err = pass.Take(ctx, result.Raw)
	return result, err
}

// findTask gives the server of a task and its own id, where the caller may ask after it.
func (d *Deck) findTask(ctx context.Context, call drawbridge.Call, said string) (k tasking, own string, err error) {
	t, ok := d.sealer.OpenTicket(call.Caller.Principal, said, formOf(call.Caller))
	v := d.view.Load()
	m := v.member(t.Server)
	if !ok || m == nil || !v.knows(call.Caller, m) || m.listing != nil && m.tasksFor(call.Caller) == nil { // it has none any more
		return tasking{}, "", unknown("task", said)
	}
	spec := drawbridge.Spec{Name: drawbridge.CardName(said), Server: t.Server, Tool: t.Own, Scopes: m.scopes}
	if err := d.allow(ctx, call, "task", spec); err != nil {
		return tasking{}, "", err
	}
	d.held.Add(call.Caller.Principal, t, said)
	return d.taskingOf(m, call.Caller), t.Own, nil
}

// formOf is the form of tasks that a caller knows.
func formOf(caller drawbridge.Caller) seal.Kind {
	if caller.Era == drawbridge.Modern {
		return seal.ModernTask
	}
	return seal.LegacyTask
}

// mayTask says why a caller may not use a method of tasks: nobody whom they may know of has tasks of their form, or they
// did not say that they know of them, which the modern form wants in every request.
func (d *Deck) mayTask(caller drawbridge.Caller, method string) error {
	known := false
	switch method {
	case wire.MethodTasksGet, wire.MethodTasksCancel:
		known = true
	case wire.MethodTasksUpdate:
		known = caller.Era == drawbridge.Modern
	case wire.MethodTasksResult, wire.MethodTasksList:
		known = caller.Era != drawbridge.Modern
	}
	if !known || !d.view.Load().hasTasks(caller) {
		return noMethod(method)
	}
	if caller.Era == drawbridge.Modern && wire.Get(caller.Capabilities, "extensions", wire.ExtensionTasks) == nil {
		data := `{"requiredCapabilities":{"extensions":{"` + wire.ExtensionTasks + `":{}}}}`
		return &drawbridge.Fault{
			Kind: drawbridge.BridgeFault, Code: drawbridge.InvalidInput, Step: method,
			Err: errors.New("the client did not declare the tasks extension"),
			Raw: wire.ErrorObject(wire.CodeMissingCapability, "Missing client capability: "+wire.ExtensionTasks, json.RawMessage(data)),
		}
	}
	return nil
}

// hasTasks says whether a server that the caller may know of has tasks of their form, or may yet turn out to.
func (v *view) hasTasks(caller drawbridge.Caller) bool {
	for _, m := range v.members {
		if v.knows(caller, m) && (m.listing == nil || m.tasksFor(caller) != nil) {
			return true
		}
	}
	return false
}

// tasksFor is what a server declares of tasks in the caller's form: nil where it has none.
func (m *member) tasksFor(caller drawbridge.Caller) json.RawMessage {
	switch {
	case m.listing == nil || !bytes.Contains(m.listing.Capabilities, []byte("tasks")):
		return nil
	case caller.Era == drawbridge.Modern:
		if !m.listing.Era.Has(drawbridge.Modern) {
			return nil
		}
		return wire.Get(m.listing.Capabilities, "extensions", wire.ExtensionTasks)
	case m.listing.Era.Has(drawbridge.Legacy):
		return wire.Get(m.listing.Capabilities, "tasks")
	}
	return nil
}

// taskOffers are what the servers that the caller may know of offer of tasks. A stateful caller is told only once, and so is
// promised what a server may offer that was never listed.
func (v *view) taskOffers(caller drawbridge.Caller) (offers []json.RawMessage) {
	for _, m := range v.members {
		if v.knows(caller, m) {
			offers = append(offers, m.tasksFor(caller))
			if m.listing == nil {
				offers[len(offers)-1] = declare.AnyTasks(caller)
			}
		}
	}
	return offers
}

// WatchTask has the caller told of what changes about a task, by events that have its id. The error is a
// *drawbridge.Fault for a task that the caller may not ask after. Each call of it wants one of UnwatchTask.
func (d *Deck) WatchTask(ctx context.Context, caller drawbridge.Caller, id string) error {
	if err := d.mayTask(caller, wire.MethodTasksGet); err != nil {
		return err
	}
	call := drawbridge.Call{
		Caller: caller, Method: wire.MethodTasksGet, Params: wire.Apply(nil, wire.Put(wire.Quote(id), "taskId")),
	}
	ctx, entry := d.trail.Enter(ctx, call)
	k, own, err := d.findTask(ctx, call, id)
	if err == nil {
		_, err = d.watch(ctx, k.server, claim{vigil.Subscription{Principal: caller.Principal, Session: caller.Session, Topic: vigil.Task, Public: id}, own})
	}
	return entry.Leave(drawbridge.Result{}, err)
}

// UnwatchTask ends what WatchTask began. Of a task that is not watched it is no error.
func (d *Deck) UnwatchTask(ctx context.Context, caller drawbridge.Caller, id string) error {
	return d.unwatch(ctx, caller, vigil.Task, id)
}

// taskNoticed tells those whose task it is what a server says of it: in the modern form those who watch it, in the legacy
// one, where nobody asks for that, all who are known to have it.
func (d *Deck) taskNoticed(m *member, n drawbridge.Notice, hidden func(drawbridge.Caller) bool) {
	own := wire.GetText(n.Params, "taskId")
	form, to := seal.ModernTask, d.watches.WatchersOf
	if n.Method == wire.NoteTaskStatus {
		form, to = seal.LegacyTask, func(server drawbridge.ServerID, own string) map[string]string {
			return d.held.Holders(seal.Ticket{Kind: seal.LegacyTask, Server: server, Own: own})
		}
	}
	said := n.Params
	for text, principal := range to(n.Server, own) {
		k := tasking{d: d, principal: principal, server: n.Server, apart: m.Apart, form: form}
		params, ok := k.toldOf(said)
		if !ok {
			continue
		}
		n.Params = wire.Apply(params, wire.Put(wire.Quote(text), "taskId"))
		d.listeners.Tell(Event{Kind: TaskChanged, Task: text, Principal: principal, Notice: n, HiddenFrom: hidden})
	}
}
