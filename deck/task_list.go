package deck

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// listTasks answers tasks/list of 2025-11-25 with the tasks of the caller's principal. The tasks are in configuration
// order of the servers, then in the order of each server. If a server's page has a next cursor, the deck's page ends
// there. A server that fails is skipped, so that the tasks of other servers are still listed.
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

// taskListStart returns the servers whose tasks the caller can list. It also returns where to start: the index of a
// server, and the cursor in the server's list.
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

// fetchPage requests one page of tasks from the server.
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

// rewriteListItem returns an item of a server's list with the sealed ID of its task. If principals share the server, it
// returns false for a task that the principal does not hold.
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
