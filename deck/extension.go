package deck

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck/gate"
	"github.com/drawbridge-mcp/drawbridge/deck/params"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// shares says whether the caller and the member both have an extension that the deck knows nothing of.
func (m *member) shares(theirs map[string]bool) bool {
	if m.listing == nil || len(theirs) == 0 {
		return false
	}
	for id := range wire.Foreign(m.listing.Capabilities) {
		if theirs[id] {
			return true
		}
	}
	return false
}

// doExtension carries out a request of an extension that only the caller and a server know: both must have declared it.
// Which of the extensions they share the method belongs to only they can tell. Where several servers qualify, the request
// goes to the one whose card, prompt or resource its params name.
func (d *Deck) doExtension(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	theirs := wire.Foreign(call.Caller.Capabilities)
	if len(theirs) == 0 {
		return drawbridge.Result{}, noMethod(call.Method)
	}
	v := d.view.Load()
	partners := v.partners(call.Caller, theirs)
	if len(partners) == 0 && d.beforeList != nil {
		d.beforeList(ctx)
		v = d.view.Load()
		partners = v.partners(call.Caller, theirs)
	}
	if len(partners) == 0 {
		return drawbridge.Result{}, noMethod(call.Method)
	}
	if len(call.Params) > 0 && call.Params[0] != '{' && string(call.Params) != "null" {
		return drawbridge.Result{}, invalid(call.Method, errors.New("params are no object"))
	}
	parts, err := params.Pick(call.Method, call.Params, "name", "uri", "requestState")
	if err != nil {
		return drawbridge.Result{}, err
	}
	t, besides, ok := v.meant(call, partners, parts[0], parts[1])
	if !ok {
		return drawbridge.Result{}, severalMethods(call.Method, partners)
	}
	if v.conceals(call.Caller, t.spec.Server, parts[0]) {
		return drawbridge.Result{}, noMethod(call.Method)
	}
	p := params.Params{State: parts[2], Arguments: wire.Apply(call.Params, wire.Drop("_meta"), wire.Drop("requestState"), wire.Drop("inputResponses"))}
	if string(p.State) == "null" {
		p.State = nil
	}
	var result drawbridge.Result
	for _, other := range besides {
		if _, err = d.judge(ctx, call, other); err != nil {
			break
		}
	}
	if err == nil {
		result, err = d.carry(ctx, call, t, p)
	}
	if f, ok := errors.AsType[*drawbridge.Fault](err); ok && f.Kind == drawbridge.UnknownCapability {
		err = noMethod(call.Method) // a guard hides it
	}
	return result, err
}

// partners are the members that the caller may know of and shares an extension with.
func (v *view) partners(caller drawbridge.Caller, theirs map[string]bool) (out []*member) {
	for _, m := range v.members {
		if v.knows(caller, m) && m.shares(theirs) {
			out = append(out, m)
		}
	}
	return out
}

// meant is what a request of an unknown extension is about: the only server that can be, with the names and URIs of the
// deck in "name" and "uri" turned into the server's own; and what it names besides, which is to be allowed too. It says false
// where several servers can be.
func (v *view) meant(call drawbridge.Call, partners []*member, name, uri json.RawMessage) (t target, besides []target, ok bool) {
	var found []target
	strayed := false // there is a URI that nobody lists
	add := func(t target, said, place string) {
		if slices.ContainsFunc(partners, func(m *member) bool { return m.ID == t.spec.Server }) {
			found = append(found, t.rewritten(said, place))
		}
	}
	if said, ok := wire.Text(name); ok {
		among := call.Caller
		among.Scopes = scopesOf(partners)
		if it := v.tools.find(among, said); it != nil {
			add(it.target(), said, "name")
		} else if it := v.prompts.find(among, said); it != nil {
			add(it.target(), said, "name")
		}
	}
	if said, ok := wire.Text(uri); ok {
		t, ok := v.named(call.Caller, said)
		if it := v.templates.closest(call.Caller, said); !ok && it != nil {
			t, ok = matched(it, said), true
		}
		if strayed = !ok; ok {
			add(t, said, "uri")
		}
	}
	server := partners[0].ID
	if len(found) > 0 {
		server = found[0].spec.Server
	} else if len(partners) > 1 {
		return target{}, nil, false
	}
	if m := v.member(server); strayed && m.hasResources() { // it need not list all that it has
		found = append(found, m.unlisted(wire.GetText(call.Params, "uri"), wire.GetText(call.Params, "uri")))
	}
	if len(found) == 0 {
		return target{own: call.Method, spec: drawbridge.Spec{
			Name: drawbridge.CardName(call.Method), Server: server, Tool: call.Method,
			Scopes: []drawbridge.Scope{drawbridge.ServerScope(server)},
		}}, nil, true
	}
	t = found[0]
	for _, f := range found[1:] {
		if f.spec.Server != server {
			return target{}, nil, false
		}
		t.edits = append(t.edits, f.edits...)
	}
	return t, found[1:], true
}

// conceals says whether the server has a tool or a prompt of that name, as it knows it or as the deck does, that the caller may
// not know of.
func (v *view) conceals(caller drawbridge.Caller, server drawbridge.ServerID, name json.RawMessage) bool {
	said, _ := wire.Text(name)
	return slices.ContainsFunc([]*shelf{v.tools, v.prompts}, func(s *shelf) bool {
		return slices.ContainsFunc([]*item{s.byName[said], s.ownedBy(server, said)}, func(it *item) bool {
			return it != nil && it.spec.Server == server && !s.shows(caller, it)
		})
	})
}

// scopesOf are the scopes of the members, and no more.
func scopesOf(members []*member) (out []drawbridge.Scope) {
	for _, m := range members {
		out = append(out, m.scopes...)
	}
	return out
}

// severalMethods is the fault for a method that several servers may have. The caller may know of all of them.
func severalMethods(method string, members []*member) error {
	ids := make([]string, 0, len(members))
	for _, m := range members {
		ids = append(ids, string(m.ID))
	}
	return gate.Several(method, ids)
}
