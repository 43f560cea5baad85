package deck

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// listTasks sets the result of tasks/list, a method of protocol version 2025-11-25, to the tasks of the caller's
// principal. The servers are in configuration order, and the tasks of a server are in the server's order. The page that
// the caller gets ends after the first server's page that has a next cursor. A server that fails is skipped. But if the
// page begins at a cursor in the failed server's list, or ctx has ended, listTasks returns the error.
func (d *Deck) listTasks(ctx context.Context, s *callState) error {
	call := s.call
	if err := d.checkTaskMethod(call.Caller, call.Method); err != nil {
		return err
	}
	servers, at, cursor, err := d.taskListStart(call)
	if err != nil {
		return err
	}
	var tasks []byte
	if at == 0 && cursor == "" {
		if tasks, err = d.listOwnTasks(ctx, s); err != nil {
			return err
		}
	}
	next := ""
	for ; at < len(servers) && next == ""; at, cursor = at+1, "" {
		k := d.taskTranslatorFor(servers[at], call.Caller)
		if d.authorizeCall(ctx, s.log, call, taskKind,
			drawbridge.Spec{Server: k.server, Scopes: servers[at].scopes}) != nil {
			continue
		}
		page, err := k.fetchPage(ctx, call, cursor)
		switch {
		case err != nil && (ctx.Err() != nil || cursor != ""):
			return err
		case err != nil:
			d.log.Warn("cannot list the server's tasks", "server", k.server, "err", err)
			continue
		}
		for item := range rawjson.Elements(rawjson.Get(page, "tasks")) {
			if item, ok := k.rewriteListItem(item); ok {
				tasks = append(append(tasks, ','), item...)
			}
		}
		if own := rawjson.GetString(page, "nextCursor"); own != "" {
			next = d.sealer.sealID(call.Caller.Principal, sealedID{Kind: listCursorID, Server: k.server, Own: own})
		}
	}
	out := []byte(`{"tasks":[`)
	if len(tasks) > 0 {
		out = append(out, tasks[1:]...)
	}
	out = append(out, ']')
	if next != "" {
		out = rawjson.AppendQuoted(append(out, `,"nextCursor":`...), next)
	}
	s.result.Raw = append(out, '}')
	return nil
}

// taskListStart returns the servers whose tasks the caller can list. It also returns the start of the requested page:
// at is the index of a server, and cursor is the position in this server's list. Without a cursor in the params, these
// are 0 and "".
func (d *Deck) taskListStart(call drawbridge.Call) (servers []*serverState, at int, cursor string, err error) {
	v := d.view.Load()
	for _, m := range v.servers {
		if v.mayKnowServer(call.Caller, m) && rawjson.Get(m.taskCapabilities(call.Caller), "list") != nil {
			servers = append(servers, m)
		}
	}
	parts, err := pickMembers(call.Method, call.Params, "cursor")
	if err != nil || parts[0] == nil || string(parts[0]) == "null" {
		return servers, 0, "", err
	}
	said, _ := rawjson.DecodeString(parts[0])
	t, ok := d.sealer.openID(call.Caller.Principal, said, listCursorID)
	for i, m := range servers {
		if ok && m.ID == t.Server {
			return servers, i, t.Own, nil
		}
	}
	return nil, 0, "", invalidParamsFault(call.Method, errors.New("unknown cursor: start again without one"))
}

// fetchPage requests the page of tasks at the cursor from the server; an empty cursor means the first page.
func (k taskTranslator) fetchPage(ctx context.Context, call drawbridge.Call, cursor string) (json.RawMessage, error) {
	edits := append(k.requestEdits(call.Params), rawjson.Drop("cursor"))
	if cursor != "" {
		edits[len(edits)-1] = rawjson.Put(rawjson.Quote(cursor), "cursor")
	}
	call.Params = rawjson.Apply(call.Params, edits...)
	call.Peer = k.wrapPeer(call.Peer)
	pass := k.deck.resultFilter(call, k.server, call.Method, "task")
	result, err := k.deck.upstream.Do(ctx, k.server, call)
	if err != nil {
		return nil, pass.ApplyToError(ctx, err)
	}
	return pass.Apply(ctx, result.Raw)
}

// rewriteListItem returns a task object of a server's list with the task ID replaced with the sealed ID. It returns
// false for an item without a task ID, and for a task that the principal must not see; see knownID.
func (k taskTranslator) rewriteListItem(item json.RawMessage) (json.RawMessage, bool) {
	own, ok := rawjson.DecodeString(rawjson.Get(item, "taskId"))
	if !ok {
		return nil, false
	}
	text, ok := k.knownID(own)
	if !ok {
		return nil, false
	}
	return rawjson.Apply(item, rawjson.Put(rawjson.Quote(text), "taskId")), true
}
