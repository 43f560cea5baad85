package deck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A VettedItem is one object of a server's list, and how it is shown. Of the zero value nothing is.
type VettedItem struct {
	// Original is the object as the server sent it.
	Original json.RawMessage
	// Definition is the object as it is shown: Own itself, the same bytes, where nothing was changed. Nil is not shown,
	// for the reason Why, which Code names.
	Definition       json.RawMessage
	OmitReason, Code string
	// OwnArguments has, by the names that Definition gives them, the properties and arguments that the server knows by
	// others.
	OwnArguments map[string]string
	// HeldReason keeps calls from it, and says why; Next says what a person can do then. Both are empty for what may
	// be called.
	HeldReason, NextStep string
}

// A VettingNote is something that was done to what a server says, for people.
type VettingNote struct {
	// Kind is "tool", "prompt", "resource", "template", or "server" for what it says of itself. Name is the object's
	// own.
	Kind, Name string
	// Action is one word: "blanked", "renamed", "stripped", "cut", "flagged", "kept". Why says it in full.
	Action, Why string
	// Weak says that nothing was taken out and no rule met: it was flagged by what sentences weigh alone, which errs
	// now and then.
	Weak bool
}

// A VettedListing is what may be shown of a listing.
type VettedListing struct {
	// Tools, Prompts, Resources and Templates are in the order they are listed in.
	Tools, Prompts, Resources, Templates []VettedItem
	// Info, Capabilities and Instructions take the place of the listing's.
	Info, Capabilities json.RawMessage
	Instructions       string
	Notes              []VettingNote
}

// ShowAll returns a listing of which everything is shown as the server sent it.
func ShowAll(l drawbridge.Listing) VettedListing {
	return VettedListing{
		Tools: unvettedItems(l.Tools), Prompts: unvettedItems(l.Prompts), Resources: unvettedItems(l.Resources),
		Templates: unvettedItems(l.Templates),
		Info:      l.Info, Capabilities: l.Capabilities, Instructions: l.Instructions,
	}
}

func unvettedItems(list []json.RawMessage) []VettedItem {
	out := make([]VettedItem, len(list))
	for i, raw := range list {
		out[i] = VettedItem{Original: raw, Definition: raw}
	}
	return out
}

// An offeredItem is an object that can be on the deck.
type offeredItem struct {
	// ownName is its name or URI as the server knows it, Name as its definition has it.
	ownName, Name        string
	Raw                  json.RawMessage
	ownArguments         map[string]string
	heldReason, nextStep string
}

// equal says whether two offers come to the same item.
func (o offeredItem) equal(other offeredItem) bool {
	return o.ownName == other.ownName && o.Name == other.Name && o.heldReason == other.heldReason &&
		o.nextStep == other.nextStep &&
		equalRawJSON(o.Raw, other.Raw) && maps.Equal(o.ownArguments, other.ownArguments)
}

// selectOffers sorts out what of a list can be on the deck: objects that are shown and say their name (in their member
// of that name), once, and no more of them than most (0 is any number); what cannot is left out as of that kind.
// Before gives what stood at a place the last time: where it still stands there it is not read again.
func selectOffers(kind, member string, list []VettedItem, most int, before func(i int) (offeredItem, bool)) (
	offers []offeredItem, out []OmittedItem) {
	seen := make(map[string]bool, len(list))
	offers = make([]offeredItem, 0, len(list))
	for _, s := range list {
		if b, ok := before(len(offers)); ok && !seen[b.ownName] && (most == 0 || len(offers) < most) &&
			s.matchesOffer(b) {
			seen[b.ownName] = true
			offers = append(offers, offeredItem{b.ownName, b.Name, s.Definition, nil, s.HeldReason, s.NextStep})
			continue
		}
		own, ok := rawjson.DecodeString(rawjson.Get(s.Original, member))
		reason, code := "", ""
		switch {
		case !bytes.HasPrefix(bytes.TrimSpace(s.Original), []byte("{")):
			reason = "it is no object"
		case !ok || own == "":
			reason = fmt.Sprintf("it has no %s", member)
		case member == "name" && seen[own]:
			reason = "the server lists its name twice"
		case s.Definition == nil && s.OmitReason != "":
			reason, code = s.OmitReason, s.Code
		case most > 0 && len(offers) >= most:
			reason = fmt.Sprintf("it is over the limit of %d for this server", most)
		case s.Definition == nil:
			reason, code = "nobody has looked at it", "unvetted"
		}
		if reason != "" {
			out = append(out, OmittedItem{kind, own, reason, code})
			continue
		}
		seen[own] = true
		name := own
		if !equalRawJSON(s.Original, s.Definition) {
			name = rawjson.GetString(s.Definition, member)
		}
		offers = append(offers, offeredItem{own, name, s.Definition, s.OwnArguments, s.HeldReason, s.NextStep})
	}
	return offers, out
}

// matchesOffer says whether s is an object that stands where it stood, as it came from the server.
func (s VettedItem) matchesOffer(b offeredItem) bool {
	return len(b.ownArguments) == 0 && len(s.OwnArguments) == 0 && b.ownName == b.Name && equalRawJSON(s.Original,
		s.Definition) && equalRawJSON(s.Definition, b.Raw)
}

// equalRawJSON compares objects, quickly where they are the same memory.
func equalRawJSON(a, b json.RawMessage) bool {
	if len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) {
		return true
	}
	return bytes.Equal(a, b)
}
