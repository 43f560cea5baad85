package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// An AgentItem is a prompt or a skill of a server that the person of an agent's session can choose.
type AgentItem struct {
	// Server is the server; empty for a skill whose owner is not known. Own is the item's name at the server.
	Server drawbridge.ServerID
	Own    string
	// Name is the name under which Drawbridge lists the item: for a skill, its URI.
	Name string
	// Definition is the item in the list of the server. It is not trusted.
	Definition json.RawMessage
}

// Items returns the items that a session may use, for the method prompts/list or skills/list. It waits up to
// agent.NewServerWait for servers that were never listed before.
func (t *AgentTools) Items(ctx context.Context, who agent.Identity, method string) (items []AgentItem, err error) {
	caller := t.callerOf(who)
	wait, cancel := context.WithTimeout(ctx, agent.NewServerWait)
	defer cancel()
	t.g.starter.startAll()
	unlisted := t.g.starter.neverListed() // those of a reload, too
	for _, row := range t.visibleRows(caller) {
		if slices.Contains(unlisted, row.ID) {
			t.g.starter.awaitFirstAttempts(wait, []drawbridge.ServerID{row.ID})
		}
	}
	switch method {
	case mcp.MethodPromptsList:
		for _, spec := range t.g.deck.Items(caller, method) {
			items = append(items, AgentItem{spec.Server, spec.Tool, string(spec.Name), spec.Definition})
		}
		return items, nil
	case mcp.MethodSkillsList:
		list, err := t.g.deck.List(ctx, caller, method)
		if f, ok := errors.AsType[*drawbridge.Fault](err); ok && f.Code == drawbridge.NotFound {
			return nil, nil // no server has skills
		}
		for _, raw := range list.Items {
			uri := rawjson.GetString(raw, "uri")
			_, own, _ := naming.CutServer(uri)
			items = append(items, AgentItem{t.g.deck.SkillServer(ctx, caller, uri), cmp.Or(own, uri), uri, raw})
		}
		return items, err
	}
	return nil, unsupportedByAgents(method)
}

// Fetch returns the result of prompts/get or resources/read. The guards decide on the call, and it is on record. It asks
// no person: a call that needs an approval waits for "drawbridge ask".
func (t *AgentTools) Fetch(ctx context.Context, who agent.Identity, method string, params json.RawMessage) (
	json.RawMessage, error) {
	if method != mcp.MethodPromptsGet && method != mcp.MethodResourcesRead {
		return nil, unsupportedByAgents(method)
	}
	result, err := t.g.deck.Do(ctx, drawbridge.Call{Caller: t.callerOf(who), Method: method, Params: params})
	return result.Raw, err
}

func unsupportedByAgents(method string) error {
	return &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: "read the request",
		Err: fmt.Errorf("a session of the agent does not use %.40q", method)}
}
