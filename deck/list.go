package deck

import (
	"context"
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck/declare"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// List gives what the caller sees by one of the list methods: tools/list, prompts/list, resources/list,
// resources/templates/list or skills/list. The error is a *drawbridge.Fault NotFound for any other method, and for
// skills/list where no server that the caller may know of has skills; for that method it may be a server's as well, since
// skills are asked for when a caller does.
func (d *Deck) List(ctx context.Context, caller drawbridge.Caller, method string) (List, error) {
	if d.beforeList != nil {
		d.beforeList(ctx)
	}
	if method == wire.MethodSkillsList {
		return d.listSkills(ctx, caller)
	}
	s := d.view.Load().byMethod(method)
	if s == nil {
		return List{}, unknown("method", method)
	}
	return d.shortened(s, caller, method), nil
}

// Hint says how long an answer to a list method, or to server/discover, may be kept by the caller: as long and by whom
// the strictest of the servers that contribute to it allows. The zero hint is for no time and by nobody else.
func (d *Deck) Hint(caller drawbridge.Caller, method string) drawbridge.Hint {
	v := d.view.Load()
	if s := v.byMethod(method); s != nil {
		return s.listFor(caller).Hint
	}
	if method != wire.MethodDiscover {
		return drawbridge.Hint{}
	}
	var groups []group
	whole := true
	for _, m := range v.members {
		hint := drawbridge.Hint{}
		if m.listing != nil {
			hint = m.listing.Hints[wire.MethodDiscover]
			// Who hears of an extension that we do not know depends on what they declare themselves.
			hint.Public = hint.Public && len(wire.Foreign(m.listing.Capabilities)) == 0
		}
		if v.knows(caller, m) {
			groups = append(groups, group{hint: &hint})
		} else {
			whole = false
		}
	}
	return hintOf(groups, whole)
}

// Find gives the card that the caller means by name; false where there is none that they may know of. It waits for
// nothing.
func (d *Deck) Find(caller drawbridge.Caller, name drawbridge.CardName) (drawbridge.Spec, bool) {
	it := d.view.Load().tools.find(caller, string(name))
	if it == nil {
		return drawbridge.Spec{}, false
	}
	return it.spec, true
}

// Look gives what is known by a name or URI, whoever it is hidden from: for those who keep the rules. Of several it gives the
// first, tools before others.
func (d *Deck) Look(name string) (kind string, spec drawbridge.Spec, ok bool) {
	for _, s := range d.view.Load().shelves() {
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

// Cards gives the cards that the caller may call, in the order they are listed: for help, with shipped and bridged cards
// side by side.
func (d *Deck) Cards(caller drawbridge.Caller) []drawbridge.Spec {
	return d.view.Load().tools.cards(caller)
}

// Instructions joins what the servers that the caller may know of say about their use: each under its name, cut to 2 KiB,
// all of it cut to 16 KiB, in configuration order. It is empty where no server says anything.
func (d *Deck) Instructions(caller drawbridge.Caller) string {
	var said declare.Instructions
	said.Begin(d.findHint(caller))
	v := d.view.Load()
	for _, m := range v.members {
		if m.listing != nil && v.knows(caller, m) && !said.Say(m.ID, m.listing.Instructions) {
			break
		}
	}
	return said.String()
}

// Capabilities is the ServerCapabilities object of the deck for the caller: what the servers that they may know of offer
// together. As long as one of these was never listed it may offer anything, and a stateful caller is told only once; so
// everything is promised then. Extensions are told where what they bring can pass, see declare.Extensions.
func (d *Deck) Capabilities(caller drawbridge.Caller) json.RawMessage {
	var known []json.RawMessage
	never := false
	v := d.view.Load()
	for _, m := range v.members {
		if !v.knows(caller, m) {
			continue
		}
		if never = never || m.listing == nil; m.listing != nil {
			known = append(known, m.listing.Capabilities)
		}
	}
	caps := wire.Apply(declare.Capabilities(known, never), declare.Extensions(caller.Capabilities, known)...)
	return declare.Tasks(caller, caps, v.taskOffers(caller))
}
