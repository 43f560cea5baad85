// Package offer is what a server offers, as it may be shown: what of a list can be on the deck, in which words, and what
// of these words the server knows by others.
//
// It promises that what nobody said how to show is not shown; that of two objects with one name the first counts; and
// that a caller who uses the words that were shown reaches what the server meant by its own.
package offer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A Shown is one object of a server's list, and how it is shown. Of the zero value nothing is.
type Shown struct {
	// Own is the object as the server sent it.
	Own json.RawMessage
	// Definition is the object as it is shown: Own itself, the same bytes, where nothing was changed. Nil is not shown,
	// for the reason Why, which Code names.
	Definition json.RawMessage
	Why, Code  string
	// Names has, by the names that Definition gives them, the properties and arguments that the server knows by others.
	Names map[string]string
	// Held keeps calls from it, and says why; Next says what a person can do then. Both are empty for what may be called.
	Held, Next string
}

// A Note is something that was done to what a server says, for people.
type Note struct {
	// Kind is "tool", "prompt", "resource", "template", or "server" for what it says of itself. Name is the object's own.
	Kind, Name string
	// Did is one word: "blanked", "renamed", "stripped", "cut", "flagged", "kept". Why says it in full.
	Did, Why string
	// Slight says that nothing was taken out and no rule met: it was flagged by what sentences weigh alone, which errs now and then.
	Slight bool
}

// A Vetted is what may be shown of a listing.
type Vetted struct {
	// Tools, Prompts, Resources and Templates are in the order they are listed in.
	Tools, Prompts, Resources, Templates []Shown
	// Info, Capabilities and Instructions take the place of the listing's.
	Info, Capabilities json.RawMessage
	Instructions       string
	Notes              []Note
}

// Unvetted shows a listing as it came.
func Unvetted(l drawbridge.Listing) Vetted {
	return Vetted{
		Tools: plain(l.Tools), Prompts: plain(l.Prompts), Resources: plain(l.Resources), Templates: plain(l.Templates),
		Info: l.Info, Capabilities: l.Capabilities, Instructions: l.Instructions,
	}
}

func plain(list []json.RawMessage) []Shown {
	out := make([]Shown, len(list))
	for i, raw := range list {
		out[i] = Shown{Own: raw, Definition: raw}
	}
	return out
}

// An Offer is an object that can be on the deck.
type Offer struct {
	// Own is its name or URI as the server knows it, Name as its definition has it.
	Own, Name  string
	Raw        json.RawMessage
	Names      map[string]string
	Held, Next string
}

// Same says whether two offers come to the same item.
func (o Offer) Same(other Offer) bool {
	return o.Own == other.Own && o.Name == other.Name && o.Held == other.Held && o.Next == other.Next &&
		sameBytes(o.Raw, other.Raw) && maps.Equal(o.Names, other.Names)
}

// Sort sorts out what of a list can be on the deck: objects that are shown and say their name (in their member of that
// name), once, and no more of them than most (0 is any number); what cannot is left out as of that kind. Before gives what stood at a place the last time: where it
// still stands there it is not read again.
func Sort(kind, member string, list []Shown, most int, before func(i int) (Offer, bool)) (offers []Offer, out []LeftOut) {
	seen := make(map[string]bool, len(list))
	offers = make([]Offer, 0, len(list))
	for _, s := range list {
		if b, ok := before(len(offers)); ok && !seen[b.Own] && (most == 0 || len(offers) < most) && s.is(b) {
			seen[b.Own] = true
			offers = append(offers, Offer{b.Own, b.Name, s.Definition, nil, s.Held, s.Next})
			continue
		}
		own, ok := wire.Text(wire.Get(s.Own, member))
		reason, code := "", ""
		switch {
		case !bytes.HasPrefix(bytes.TrimSpace(s.Own), []byte("{")):
			reason = "it is no object"
		case !ok || own == "":
			reason = fmt.Sprintf("it has no %s", member)
		case member == "name" && seen[own]:
			reason = "the server lists its name twice"
		case s.Definition == nil && s.Why != "":
			reason, code = s.Why, s.Code
		case most > 0 && len(offers) >= most:
			reason = fmt.Sprintf("it is over the limit of %d for this server", most)
		case s.Definition == nil:
			reason, code = "nobody has looked at it", "unvetted"
		}
		if reason != "" {
			out = append(out, LeftOut{kind, own, reason, code})
			continue
		}
		seen[own] = true
		name := own
		if !sameBytes(s.Own, s.Definition) {
			name = wire.GetText(s.Definition, member)
		}
		offers = append(offers, Offer{own, name, s.Definition, s.Names, s.Held, s.Next})
	}
	return offers, out
}

// is says whether s is an object that stands where it stood, as it came from the server.
func (s Shown) is(b Offer) bool {
	return len(b.Names) == 0 && len(s.Names) == 0 && b.Own == b.Name && sameBytes(s.Own, s.Definition) && sameBytes(s.Definition, b.Raw)
}

// sameBytes compares objects, quickly where they are the same memory.
func sameBytes(a, b json.RawMessage) bool {
	if len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) {
		return true
	}
	return bytes.Equal(a, b)
}
