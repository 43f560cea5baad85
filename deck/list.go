package deck

import (
	"context"
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// List gives what the caller sees by one of the list methods: tools/list, prompts/list, resources/list,
// resources/templates/list or skills/list. The error is a *drawbridge.Fault NotFound for any other method, and for
// skills/list where no server that the caller may know of has skills; for that method it may be a server's as well,
// since skills are asked for when a caller does.
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

// CacheHint says how long an answer to a list method, or to server/discover, may be kept by the caller: as long and by
// whom the strictest of the servers that contribute to it allows. The zero hint is for no time and by nobody else.
func (d *Deck) CacheHint(caller drawbridge.Caller, method string) drawbridge.CacheHint {
	v := d.view.Load()
	if s := v.indexForMethod(method); s != nil {
		return s.listForCaller(caller).CacheHint
	}
	if method != mcp.MethodDiscover {
		return drawbridge.CacheHint{}
	}
	var groups []itemGroup
	whole := true
	for _, m := range v.servers {
		hint := drawbridge.CacheHint{}
		if m.listing != nil {
			hint = m.listing.CacheHints[mcp.MethodDiscover]
			// Who hears of an extension that we do not know depends on what they declare themselves.
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

// FindCard gives the card that the caller means by name; false where there is none that they may know of. It waits for
// nothing.
func (d *Deck) FindCard(caller drawbridge.Caller, name drawbridge.CardName) (drawbridge.Spec, bool) {
	it := d.view.Load().tools.findByName(caller, string(name))
	if it == nil {
		return drawbridge.Spec{}, false
	}
	return it.spec, true
}

// FindUnfiltered gives what is known by a name or URI, whoever it is hidden from: for those who keep the rules. Of
// several it gives the first, tools before others.
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

// Cards gives the cards that the caller may call, in the order they are listed: for help, with shipped and bridged
// cards side by side.
func (d *Deck) Cards(caller drawbridge.Caller) []drawbridge.Spec {
	return d.view.Load().tools.callableSpecs(caller)
}

// Instructions joins what the servers that the caller may know of say about their use: each under its name, cut to 2
// KiB, all of it cut to 16 KiB, in configuration order. It is empty where no server says anything.
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

// Capabilities is the ServerCapabilities object of the deck for the caller: what the servers that they may know of
// offer together. As long as one of these was never listed it may offer anything, and a stateful caller is told only
// once; so everything is promised then. Extensions are told where what they bring can pass, see extensionEdits.
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
	caps := rawjson.Apply(serverCapabilities(known, never), extensionEdits(caller.Capabilities, known)...)
	return addTaskCapabilities(caller, caps, v.allTaskCapabilities(caller))
}
