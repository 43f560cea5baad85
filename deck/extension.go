package deck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// settings gives what capabilities say of an extension in one of the declarations; nil where it is no object.
func settings(capabilities json.RawMessage, declaration, extension string) json.RawMessage {
	if s := wire.Get(capabilities, declaration, extension); len(s) > 0 && s[0] == '{' {
		return s
	}
	return nil
}

// extensions gives the edits that put into capabilities what the members have of extensions, for a caller who holds all
// of them.
//
// MCP Apps and skills are always told: the first needs no method of its own, and of the second we answer the methods.
// Where several servers declare one, the settings are those of the first in configuration order, byte for byte, but that
// skills whose directories can be read go before others: then "resources/directory/read" has somebody to go to. An
// extension that we know nothing of is told only to a caller who declares it too, since nothing of it passes otherwise
// (see [Deck.Do]), in the member in which its server has it, with the settings of the first server that has it. Of what
// was never listed nothing is promised. How we sign in at servers is told to nobody.
func extensions(caller drawbridge.Caller, members []*member) []wire.Edit {
	told := map[string]*declared{}
	for _, declaration := range wire.Declarations() {
		told[declaration] = &declared{settings: map[string]json.RawMessage{}}
	}
	shared := wire.Foreign(caller.Capabilities)
	for _, m := range members {
		if m.listing == nil {
			continue
		}
		for _, id := range []string{wire.ExtensionApps, wire.ExtensionSkills} {
			told[wire.Declarations()[0]].note(id, settings(m.listing.Capabilities, wire.Declarations()[0], id))
		}
		if len(shared) == 0 {
			continue
		}
		for _, declaration := range wire.Declarations() {
			for e := range wire.Members(wire.Get(m.listing.Capabilities, declaration)) {
				if id, _ := wire.Text(e.Name); shared[id] && e.Value[0] == '{' {
					told[declaration].note(id, e.Value)
				}
			}
		}
	}
	var edits []wire.Edit
	for _, declaration := range wire.Declarations() {
		if object := told[declaration].object(); object != nil {
			edits = append(edits, wire.Put(object, declaration))
		}
	}
	return edits
}

// declared is what is told of extensions in one declaration, in the order in which they were noted.
type declared struct {
	settings map[string]json.RawMessage
	order    []string
}

// note takes an extension with its settings; nil are none.
func (d *declared) note(id string, settings json.RawMessage) {
	switch before := d.settings[id]; {
	case settings == nil:
	case before == nil:
		d.order = append(d.order, id)
		d.settings[id] = settings
	case id == wire.ExtensionSkills && !readsDirectories(before) && readsDirectories(settings):
		d.settings[id] = settings
	}
}

// object writes the declaration, in one pass: how many extensions there are is for others to say. It is nil for none.
func (d *declared) object() json.RawMessage {
	if len(d.order) == 0 {
		return nil
	}
	out := []byte{'{'}
	for i, id := range d.order {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(wire.AppendQuoted(out, id), ':'), d.settings[id]...)
	}
	return append(out, '}')
}

// readsDirectories says whether a server with these settings for skills answers "resources/directory/read".
func readsDirectories(settings json.RawMessage) bool {
	return string(wire.Get(settings, "directoryRead")) == "true"
}

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
	parts, err := pick(call.Method, call.Params, "name", "uri", "requestState")
	if err != nil {
		return drawbridge.Result{}, err
	}
	t, ok := v.meant(call, partners, parts[0], parts[1])
	if !ok {
		return drawbridge.Result{}, severalMethods(call.Method, partners)
	}
	p := params{state: parts[2], arguments: wire.Apply(call.Params, wire.Drop("_meta"), wire.Drop("requestState"), wire.Drop("inputResponses"))}
	if string(p.state) == "null" {
		p.state = nil
	}
	result, err := d.carry(ctx, call, t, p)
	if f, ok := errors.AsType[*drawbridge.Fault](err); ok && f.Kind == drawbridge.UnknownCapability {
		err = noMethod(call.Method) // a guard hides it
	}
	return result, err
}

// partners are the members that the caller may know of and shares an extension with.
func (v *view) partners(caller drawbridge.Caller, theirs map[string]bool) (out []*member) {
	for _, m := range v.members {
		if caller.Holds(m.scopes) && m.shares(theirs) {
			out = append(out, m)
		}
	}
	return out
}

// meant is what a request of an unknown extension is about: the only server that can be, with the names and URIs of the
// deck in "name" and "uri" turned into the server's own. It says false where several servers can be.
func (v *view) meant(call drawbridge.Call, partners []*member, name, uri json.RawMessage) (target, bool) {
	var found []target
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
			t, ok = target{spec: specOf(it, said), own: said}, true
		}
		if ok {
			add(t, said, "uri")
		}
	}
	server := partners[0].ID
	if len(found) > 0 {
		server = found[0].spec.Server
	} else if len(partners) > 1 {
		return target{}, false
	}
	t := target{own: call.Method, spec: drawbridge.Spec{
		Name: drawbridge.CardName(call.Method), Server: server, Tool: call.Method,
		Scopes: []drawbridge.Scope{drawbridge.ServerScope(server)},
	}}
	for i, f := range found {
		if f.spec.Server != server {
			return target{}, false
		}
		if i == 0 {
			t.spec, t.own, t.held, t.next = f.spec, f.own, f.held, f.next
		}
		t.edits = append(t.edits, f.edits...)
	}
	return t, true
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
	text := fmt.Sprintf("Method not found: %s: several servers have an extension that you declare (%s): name a tool, prompt or resource of one of them",
		clip(method), clip(strings.Join(ids, ", ")))
	return &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound, Step: text, Raw: wire.ErrorObject(wire.CodeMethodNotFound, text, nil),
	}
}
