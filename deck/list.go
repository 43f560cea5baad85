package deck

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// List returns the response to a list method for the caller. The methods are tools/list, prompts/list, resources/list,
// resources/templates/list and skills/list. The error is a *drawbridge.Fault NotFound for any other method, and for
// skills/list if no visible server has skills. For skills/list the deck sends requests to servers whose cached skills
// are too old, so the error may also be a server's.
func (d *Deck) List(ctx context.Context, caller drawbridge.Caller, method string) (List, error) {
	if d.beforeList != nil {
		d.beforeList(ctx)
	}
	if method == mcp.MethodSkillsList {
		return d.listSkills(ctx, caller)
	}
	s := d.view.Load().indexForMethod(method)
	if s == nil {
		return List{}, unknownNameFault("method", method)
	}
	return d.applyListMode(s, caller, method), nil
}

// ListDirect returns the response to tools/list with all tools that the caller may see, in every mode of tool
// discovery: the list that the caller would get in the mode "direct". Other callers may get a shorter list for the same
// method, so the result is never shared.
func (d *Deck) ListDirect(ctx context.Context, caller drawbridge.Caller) List {
	if d.beforeList != nil {
		d.beforeList(ctx)
	}
	list := d.view.Load().tools.listForCaller(caller)
	list.CacheHint.Public = list.CacheHint.Public && !d.searcher.MayShorten()
	return list
}

// CacheHint returns how long the result of a list method or of server/discover may be cached, and whether several
// callers may share the cached result. It is the strictest of the hints that the servers in the result sent. The zero
// hint, which forbids caching, is returned for all other methods, including skills/list.
func (d *Deck) CacheHint(caller drawbridge.Caller, method string) drawbridge.CacheHint {
	v := d.view.Load()
	if s := v.indexForMethod(method); s != nil {
		return d.applyListMode(s, caller, method).CacheHint
	}
	if method != mcp.MethodDiscover {
		return drawbridge.CacheHint{}
	}
	var groups []itemGroup
	whole := !d.searcher.DependsOnClient() // the instructions explain a short list
	for _, m := range v.servers {
		hint := drawbridge.CacheHint{}
		if m.listing != nil {
			hint = m.listing.CacheHints[mcp.MethodDiscover]
			// Unknown extensions are declared only to clients that declare them too, so the result differs between callers.
			hint.Public = hint.Public && len(mcp.UnknownExtensions(m.listing.Capabilities)) == 0
		}
		if v.mayKnowServer(caller, m) {
			groups = append(groups, itemGroup{hint: &hint})
		} else {
			whole = false
		}
	}
	return combinedHint(groups, whole)
}

// FindCard returns the tool with this name, in any naming style, if it is visible to the caller. It does not wait for
// servers that are starting.
func (d *Deck) FindCard(caller drawbridge.Caller, name drawbridge.CardName) (drawbridge.Spec, bool) {
	it := d.view.Load().tools.findByName(caller, string(name))
	if it == nil {
		return drawbridge.Spec{}, false
	}
	return it.spec, true
}

// FindUnfiltered returns the item with this name or URI, even if guards hide it from callers, so that a person can test
// rules for it. If several items match, it returns the first of them, in the order tools, prompts, resources,
// templates.
func (d *Deck) FindUnfiltered(name string) (kind string, spec drawbridge.Spec, ok bool) {
	for _, s := range d.view.Load().allIndexes() {
		found := s.byAlias()[name]
		if it := s.byName[name]; it != nil {
			found = []*item{it}
		}
		if len(found) > 0 {
			return found[0].kind, found[0].spec, true
		}
	}
	return "", drawbridge.Spec{}, false
}

// ListVersion returns a number that changes with each change of the lists.
func (d *Deck) ListVersion() uint64 { return d.versions.Load() }

// Cards returns the specs of all tools that are visible to the caller, in listed order. They include shipped cards and
// tools of servers.
func (d *Deck) Cards(caller drawbridge.Caller) []drawbridge.Spec {
	return d.view.Load().tools.callableSpecs(caller)
}

// Items returns the specs of all items that are visible to the caller, for a list method other than skills/list. For
// any other method it returns nil. Unlike [Deck.List], it never returns the short list of tools.
func (d *Deck) Items(caller drawbridge.Caller, method string) []drawbridge.Spec {
	if s := d.view.Load().indexForMethod(method); s != nil {
		return s.callableSpecs(caller)
	}
	return nil
}

// Instructions returns the text for the member "instructions" of the deck's own initialization result. If the caller
// gets a short list of tools, the text begins with an explanation of the short list. Then follow the instructions of
// the visible servers, in configuration order, each with a heading. Each server's instructions are truncated to 2 KiB,
// and the whole text to 16 KiB.
func (d *Deck) Instructions(caller drawbridge.Caller) string {
	var said instructionsBuilder
	said.addPreamble(d.shortListHint(caller))
	v := d.view.Load()
	for _, m := range v.servers {
		if m.listing != nil && v.mayKnowServer(caller, m) && !said.addServer(m.ID, m.listing.Instructions) {
			break
		}
	}
	return said.String()
}

// Capabilities returns the ServerCapabilities object that the deck declares to the caller. It is the union of the
// capabilities of the visible servers. A server that was never listed may have any capability, and a stateful caller
// requests the object only once. So the object has all capabilities while such a server is visible. extensionEdits
// describes which extensions it contains.
func (d *Deck) Capabilities(caller drawbridge.Caller) json.RawMessage {
	var known []json.RawMessage
	never := false
	v := d.view.Load()
	for _, m := range v.servers {
		if !v.mayKnowServer(caller, m) {
			continue
		}
		if never = never || m.listing == nil; m.listing != nil {
			known = append(known, m.listing.Capabilities)
		}
	}
	if slices.ContainsFunc(v.templates.items, func(it *item) bool { return it.card != nil && caller.HasScopes(it.spec.Scopes) }) {
		known = append(known, json.RawMessage(`{"resources":{"subscribe":true}}`))
	}
	caps := rawjson.Apply(serverCapabilities(known, never), extensionEdits(caller.Capabilities, known)...)
	return addTaskCapabilities(caller, caps, append(v.allTaskCapabilities(caller), d.offersOwnTask(caller)))
}
