package deck

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck/params"
	"github.com/drawbridge-mcp/drawbridge/deck/seal"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// listTasks answers tasks/list of 2025-11-25: the tasks of the caller's principal, server after server in configuration
// order, each in the server's own. A page ends where a server's page does that has more to come. A server that does not
// answer is passed over: the others' tasks are no less there.
func (d *Deck) listTasks(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	servers, at, cursor, err := d.listFrom(call)
	if err != nil {
		return drawbridge.Result{}, err
	}
	var tasks []byte
	next := ""
	for ; at < len(servers) && next == ""; at, cursor = at+1, "" {
		k := d.taskingOf(servers[at], call.Caller)
		if d.allow(ctx, call, "task", drawbridge.Spec{Server: k.server, Scopes: servers[at].scopes}) != nil {
			continue
		}
		page, err := k.page(ctx, call, cursor)
		switch {
		case err != nil && (ctx.Err() != nil || cursor != ""):
			return drawbridge.Result{}, err
		case err != nil:
			d.log.Warn("a server's tasks are not in the list", "server", k.server, "err", err)
			continue
		}
		for item := range wire.Elements(wire.Get(page, "tasks")) {
			if item, ok := k.listed(item); ok {
				tasks = append(append(tasks, ','), item...)
			}
		}
		if own := wire.GetText(page, "nextCursor"); own != "" {
			next = d.sealer.Ticket(call.Caller.Principal, seal.Ticket{Kind: seal.ListCursor, Server: k.server, Own: own})
		}
	}
	out := []byte(`{"tasks":[`)
	if len(tasks) > 0 {
		out = append(out, tasks[1:]...)
	}
	out = append(out, ']')
	if next != "" {
		out = wire.AppendQuoted(append(out, `,"nextCursor":`...), next)
	}
	return drawbridge.Result{Raw: append(out, '}')}, nil
}

// listFrom gives the servers whose tasks the caller can list, and where to begin: with which server, and where in its list.
func (d *Deck) listFrom(call drawbridge.Call) (servers []*member, at int, cursor string, err error) {
	v := d.view.Load()
	for _, m := range v.members {
		if v.knows(call.Caller, m) && wire.Get(m.tasksFor(call.Caller), "list") != nil {
			servers = append(servers, m)
		}
	}
	parts, err := params.Pick(call.Method, call.Params, "cursor")
	if err != nil || parts[0] == nil || string(parts[0]) == "null" {
		return servers, 0, "", err
	}
	said, _ := wire.Text(parts[0])
	t, ok := d.sealer.OpenTicket(call.Caller.Principal, said, seal.ListCursor)
	for i, m := range servers {
		if ok && m.ID == t.Server {
			return servers, i, t.Own, nil
		}
	}
	return nil, 0, "", invalid(call.Method, errors.New("the cursor is not one of ours"))
}

// page asks the server for a page of its tasks.
func (k tasking) page(ctx context.Context, call drawbridge.Call, cursor string) (json.RawMessage, error) {
	edit := wire.Drop("cursor")
	if cursor != "" {
		edit = wire.Put(wire.Quote(cursor), "cursor")
	}
	call.Params = wire.Apply(k.inward(call.Params), edit)
	call.Peer = k.peer(call.Peer)
	pass := k.d.passing(call, k.server, call.Method, "task")
	result, err := k.d.up.Do(ctx, k.server, call)
	if err != nil {
		return nil, pass.Fail(ctx, err)
	}
	return pass.Take(ctx, result.Raw)
}

// listed gives an item of a server's list under the ticket of its task. Where principals meet at the server it says false
// for what the principal is not known to have: nothing else tells whose it is.
func (k tasking) listed(item json.RawMessage) (json.RawMessage, bool) {
	own, ok := wire.Text(wire.Get(item, "taskId"))
	if !ok {
		return nil, false
	}
	text, ok := k.held(own)
	if !ok {
		return nil, false
	}
	return wire.Apply(item, wire.Put(wire.Quote(text), "taskId")), true
}
