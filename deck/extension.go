package deck

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// sharesExtension reports whether the server declares an extension of theirs. theirs are the extensions that the caller
// declares and that the deck does not know.
func (m *serverState) sharesExtension(theirs map[string]bool) bool {
	if m.listing == nil || len(theirs) == 0 {
		return false
	}
	for id := range mcp.UnknownExtensions(m.listing.Capabilities) {
		if theirs[id] {
			return true
		}
	}
	return false
}

// resolveExtension sets s.target for a request whose method belongs to an extension that the deck does not know. Only
// servers that declare such an extension together with the caller are considered. The deck cannot know which of these
// extensions has the method. If there are several servers, the request goes to the server whose tool, prompt or
// resource the params name. If the params name none, the request is refused.
func (d *Deck) resolveExtension(ctx context.Context, s *callState) error {
	call := s.call
	theirs := mcp.UnknownExtensions(call.Caller.Capabilities)
	if len(theirs) == 0 {
		return methodNotFoundFault(call.Method)
	}
	v := d.view.Load()
	partners := v.extensionServers(call.Caller, theirs)
	if len(partners) == 0 && d.beforeList != nil {
		d.beforeList(ctx)
		v = d.view.Load()
		partners = v.extensionServers(call.Caller, theirs)
	}
	if len(partners) == 0 {
		return methodNotFoundFault(call.Method)
	}
	if len(call.Params) > 0 && call.Params[0] != '{' && string(call.Params) != "null" {
		return invalidParamsFault(call.Method, errors.New("params must be a JSON object"))
	}
	parts, err := pickMembers(call.Method, call.Params, "name", "uri", "requestState")
	if err != nil {
		return err
	}
	t, others, ok := v.resolveExtensionTarget(call, partners, parts[0], parts[1])
	if !ok {
		return ambiguousMethod(call.Method, partners)
	}
	if v.hidesName(call.Caller, t.spec.Server, parts[0]) {
		return methodNotFoundFault(call.Method)
	}
	s.target, s.others = t, others
	s.params = callParams{State: parts[2], Arguments: rawjson.Apply(call.Params, rawjson.Drop("_meta"),
		rawjson.Drop("requestState"), rawjson.Drop("inputResponses"))}
	if string(s.params.State) == "null" {
		s.params.State = nil
	}
	s.mapError = func(err error) error {
		if f, ok := errors.AsType[*drawbridge.Fault](err); ok && f.Kind == drawbridge.UnknownCapability {
			return methodNotFoundFault(call.Method) // a guard hides the target
		}
		return err
	}
	return nil
}

// extensionServers returns the servers that are visible to the caller and declare an extension of theirs; see
// sharesExtension.
func (v *view) extensionServers(caller drawbridge.Caller, theirs map[string]bool) (out []*serverState) {
	for _, m := range v.servers {
		if v.mayKnowServer(caller, m) && m.sharesExtension(theirs) {
			out = append(out, m)
		}
	}
	return out
}

// resolveExtensionTarget returns the target of a request whose method belongs to an unknown extension. partners are the
// possible servers. name and uri are the members "name" and "uri" of the params, which may name a tool, prompt or
// resource. The target has edits that replace their public names with the server's own names. besides are further
// targets in the params; the guards must allow these too. ok is false if the params do not determine one server.
func (v *view) resolveExtensionTarget(call drawbridge.Call, partners []*serverState, name, uri json.RawMessage) (
	t callTarget, besides []callTarget, ok bool) {
	var found []callTarget
	strayed := false // the params have a URI that is not listed
	add := func(t callTarget, said, place string) {
		if slices.ContainsFunc(partners, func(m *serverState) bool { return m.ID == t.spec.Server }) {
			found = append(found, t.withOwnName(said, place))
		}
	}
	if said, ok := rawjson.DecodeString(name); ok {
		among := call.Caller
		among.Scopes = scopesOf(partners)
		if it := v.tools.findByName(among, said); it != nil {
			add(it.asTarget(), said, "name")
		} else if it := v.prompts.findByName(among, said); it != nil {
			add(it.asTarget(), said, "name")
		}
	}
	if said, ok := rawjson.DecodeString(uri); ok {
		t, ok := v.findKnownURI(call.Caller, said)
		if it := v.templates.closestTemplate(call.Caller, said); !ok && it != nil {
			t, ok = templateTarget(it, said), true
		}
		if strayed = !ok; ok {
			add(t, said, "uri")
		}
	}
	server := partners[0].ID
	if len(found) > 0 {
		server = found[0].spec.Server
	} else if len(partners) > 1 {
		return callTarget{}, nil, false
	}
	if m := v.server(server); strayed && m.hasResources() { // servers need not list all resources
		found = append(found, m.unlistedResource(rawjson.GetString(call.Params, "uri"),
			rawjson.GetString(call.Params, "uri")))
	}
	if len(found) == 0 {
		return callTarget{ownName: call.Method, spec: drawbridge.Spec{
			Name: drawbridge.CardName(call.Method), Server: server, Tool: call.Method,
			Scopes: []drawbridge.Scope{drawbridge.ServerScope(server)},
		}}, nil, true
	}
	t = found[0]
	for _, f := range found[1:] {
		if f.spec.Server != server {
			return callTarget{}, nil, false
		}
		t.edits = append(t.edits, f.edits...)
	}
	return t, found[1:], true
}

// hidesName reports whether the server has a tool or prompt with this name that is hidden from the caller. name is a
// JSON string with the server's own name or the public name.
func (v *view) hidesName(caller drawbridge.Caller, server drawbridge.ServerID, name json.RawMessage) bool {
	said, _ := rawjson.DecodeString(name)
	return slices.ContainsFunc([]*itemIndex{v.tools, v.prompts}, func(s *itemIndex) bool {
		return slices.ContainsFunc([]*item{s.byName[said], s.findByOwnName(server, said)}, func(it *item) bool {
			return it != nil && it.spec.Server == server && !s.visibleTo(caller, it)
		})
	})
}

// scopesOf returns the scopes that are required for any of the servers.
func scopesOf(members []*serverState) (out []drawbridge.Scope) {
	for _, m := range members {
		out = append(out, m.scopes...)
	}
	return out
}

// ambiguousMethod returns the fault for a request that the deck cannot assign to one of these servers.
func ambiguousMethod(method string, members []*serverState) error {
	ids := make([]string, 0, len(members))
	for _, m := range members {
		ids = append(ids, string(m.ID))
	}
	return severalServersFault(method, ids)
}
