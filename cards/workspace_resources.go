package cards

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// A resourceCard reads the resources of a template.
type resourceCard struct {
	spec drawbridge.Spec
	read func(ctx context.Context, call drawbridge.Call, uri string) (mimeType, text string, err error)
}

// Spec implements [drawbridge.Card].
func (c resourceCard) Spec() drawbridge.Spec { return c.spec }

// Run implements [drawbridge.Card]. The call is one of resources/read.
func (c resourceCard) Run(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	uri := rawjson.GetString(call.Params, "uri")
	mimeType, text, err := c.read(ctx, call, uri)
	if err != nil {
		return drawbridge.Result{}, err
	}
	content := rawjson.Apply(nil, rawjson.Put(rawjson.Quote(uri), "uri"), rawjson.Put(rawjson.Quote(mimeType), "mimeType"),
		rawjson.Put(rawjson.Quote(text), "text"))
	return drawbridge.Result{Foreign: true, Raw: rawjson.Apply(nil, rawjson.Put(append(append([]byte{'['}, content...), ']'), "contents"))}, nil
}

// WorkspaceResources returns the templates of the resources of a workspace: pages and memory.
func WorkspaceResources(w Workspace) []drawbridge.Card {
	page := func(ctx context.Context, call drawbridge.Call, uri string) (string, string, error) {
		name, _, ok := workspace.ParseURI(uri)
		if !ok {
			return "", "", unknownResource(uri)
		}
		v, err := w.Page(ctx, call, name)
		return "text/markdown", v.Text(), err
	}
	memory := func(ctx context.Context, call drawbridge.Call, uri string) (string, string, error) {
		_, place, ok := workspace.ParseURI(uri)
		if !ok {
			return "", "", unknownResource(uri)
		}
		all, err := w.Memory(ctx, call, placeOf(call.Caller, string(place.Tier), place.Key))
		text, _ := json.Marshal(orEmpty(all)) // the items have strings and times only
		return "application/json", string(text), err
	}
	return []drawbridge.Card{
		newResource("drawbridge://page/{page}", "Page", "The accepted text of a page of the workspace, by its slug or ID.", "text/markdown", scopeRead, page),
		newResource("drawbridge://memory/{tier}", "Memory", "The memory of a tier: conversation, workspace or account.", "application/json", scopeRemember, memory),
		newResource("drawbridge://memory/{tier}/{key}", "Memory of a channel", "The memory of a channel or of another place.", "application/json",
			scopeRemember, memory),
	}
}

func unknownResource(uri string) error {
	return &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.NotFound, Step: "read a resource",
		Err: fmt.Errorf("the workspace has no resource %.80q", uri)}
}

func newResource(template, name, about, mimeType string, scope drawbridge.Scope,
	read func(ctx context.Context, call drawbridge.Call, uri string) (string, string, error)) drawbridge.Card {
	return resourceCard{drawbridge.Spec{Name: drawbridge.CardName(template), Tool: template, Title: name, Summary: about,
		Scopes: []drawbridge.Scope{scope}, Definition: mustMarshal(map[string]string{"uriTemplate": template, "name": name,
			"description": about, "mimeType": mimeType})}, read}
}
