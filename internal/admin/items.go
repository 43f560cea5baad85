package admin

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// ServerItems starts a server, and returns those of its items that are visible to the caller. methods are the list
// methods of the kinds of items, such as mcp.MethodResourcesList. The error is a UserError for an unknown name, or the
// reason why the server cannot be started.
func (r *Service) ServerItems(ctx context.Context, g *gateway.Gateway, caller drawbridge.Caller,
	id drawbridge.ServerID, methods ...string) (items []drawbridge.Spec, err error) {
	roll, err := r.ReadServers(ctx)
	if err == nil {
		err = r.CheckStartable(roll, id)
	}
	if err == nil {
		_, err = g.Mount(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	for _, method := range methods {
		for _, spec := range g.Deck().Items(caller, method) {
			if spec.Server == id {
				items = append(items, spec)
			}
		}
	}
	return items, nil
}

// ReadResource starts a server and returns the result of resources/read for one of its resources. uri is the server's
// own URI, or the URI under which Drawbridge lists the resource. If the URI belongs to another server, the error is a
// UserError.
func (r *Service) ReadResource(ctx context.Context, g *gateway.Gateway, caller drawbridge.Caller,
	id drawbridge.ServerID, uri string) (json.RawMessage, error) {
	items, err := r.ServerItems(ctx, g, caller, id, mcp.MethodResourcesList)
	if err != nil {
		return nil, err
	}
	named, ok := findItem(items, uri)
	if !ok {
		if owner := resourceOwner(g, caller, uri); owner != "" && owner != id {
			return nil, userErrorf("the resource %q belongs to server %q", uri, owner)
		}
		// A server need not list all its resources. A qualified URI ensures that no other server answers.
		if _, _, qualified := naming.CutServer(uri); !qualified {
			uri = naming.QualifiedURI(id, uri)
		}
		named = drawbridge.CardName(uri)
	}
	return callItem(ctx, g, caller, mcp.MethodResourcesRead, rawjson.Put(rawjson.Quote(string(named)), "uri"))
}

// resourceOwner returns the server that owns a URI: the server whose name is in a qualified URI, or else the server
// whose resource is listed under the URI. It returns "" if there is none.
func resourceOwner(g *gateway.Gateway, caller drawbridge.Caller, uri string) drawbridge.ServerID {
	if owner, _, qualified := naming.CutServer(uri); qualified {
		return owner
	}
	for _, spec := range g.Deck().Items(caller, mcp.MethodResourcesList) {
		if string(spec.Name) == uri {
			return spec.Server
		}
	}
	return ""
}

// GetPrompt starts a server and returns the result of prompts/get for one of its prompts. name is the server's own name
// of the prompt, or the name under which Drawbridge lists it. If two arguments have the same name, the later value is
// used. If the server does not list the prompt, the error is a UserError.
func (r *Service) GetPrompt(ctx context.Context, g *gateway.Gateway, caller drawbridge.Caller, id drawbridge.ServerID,
	name string, arguments []config.NameValue) (json.RawMessage, error) {
	items, err := r.ServerItems(ctx, g, caller, id, mcp.MethodPromptsList)
	if err != nil {
		return nil, err
	}
	listed, ok := findItem(items, name)
	if !ok {
		return nil, UserError(fmt.Sprintf("server %q has no prompt %q (%s prompts %s)", id, name, r.o.CommandPrefix, id))
	}
	edits := []rawjson.Edit{rawjson.Put(rawjson.Quote(string(listed)), "name")}
	if len(arguments) > 0 {
		edits = append(edits, rawjson.Put(jsonObject(arguments), "arguments"))
	}
	return callItem(ctx, g, caller, mcp.MethodPromptsGet, edits...)
}

// findItem returns the listed name of the item whose own name or listed name is name. It returns false if there is
// none.
func findItem(items []drawbridge.Spec, name string) (drawbridge.CardName, bool) {
	for _, spec := range items {
		if spec.Tool == name || string(spec.Name) == name {
			return spec.Name, true
		}
	}
	return "", false
}

func callItem(ctx context.Context, g *gateway.Gateway, caller drawbridge.Caller, method string,
	params ...rawjson.Edit) (json.RawMessage, error) {
	result, err := g.Deck().Do(ctx, drawbridge.Call{Caller: caller, Method: method,
		Params: rawjson.Apply(nil, params...)})
	return result.Raw, err
}
