package deck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A VettedItem is one object of a server's list with its shown form. The zero value is not shown.
type VettedItem struct {
	// Original is the object as the server sent it.
	Original json.RawMessage
	// Definition is the shown object: the bytes of Original if nothing was changed. Nil is not shown, for the reason
	// OmitReason with the code Code.
	Definition       json.RawMessage
	OmitReason, Code string
	// OwnArguments maps the names of properties and arguments in Definition to the server's names, where they differ.
	OwnArguments map[string]string
	// HeldReason denies calls and explains why; NextStep tells a person how to allow them. Both are empty for an item
	// that may be called.
	HeldReason, NextStep string
}

// A VettingNote describes, for people, a change to or a finding in a server's texts.
type VettingNote struct {
	// Kind is "tool", "prompt", "resource", "template", or "server" for the server's own texts. Name is the object's
	// own name.
	Kind, Name string
	// Action is one word: "blanked", "renamed", "stripped", "cut", "flagged", "kept". Why is the full explanation.
	Action, Why string
	// Weak reports that only the weights of sentences flagged it, which is sometimes wrong. Nothing was removed and no
	// rule matched.
	Weak bool
}

// A VettedListing is the shown form of a listing.
type VettedListing struct {
	// Tools, Prompts, Resources and Templates are in listed order.
	Tools, Prompts, Resources, Templates []VettedItem
	// Info, Capabilities and Instructions replace those of the listing.
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
	// ownName is the server's name or URI for it, and Name the one in its shown definition.
	ownName, Name        string
	Raw                  json.RawMessage
	ownArguments         map[string]string
	heldReason, nextStep string
}

// equal reports whether two offers make the same item.
func (o offeredItem) equal(other offeredItem) bool {
	return o.ownName == other.ownName && o.Name == other.Name && o.heldReason == other.heldReason &&
		o.nextStep == other.nextStep &&
		sameBytes(o.Raw, other.Raw) && maps.Equal(o.ownArguments, other.ownArguments)
}

// selectOffers returns the offers of a list and the items that are left out. An offer is shown, has a unique name in
// member, and is among the first most; 0 means no limit. Before returns the previous offer at a position: if the object
// there is unchanged it is not parsed again.
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
			reason = "it is not a JSON object"
		case !ok || own == "":
			reason = fmt.Sprintf("it has no %s", member)
		case member == "name" && seen[own]:
			reason = "the server lists its name twice"
		case s.Definition == nil && s.OmitReason != "":
			reason, code = s.OmitReason, s.Code
		case most > 0 && len(offers) >= most:
			reason = fmt.Sprintf("it is over the limit of %d for this server", most)
		case s.Definition == nil:
			reason, code = "it has not been vetted", "unvetted"
		}
		if reason != "" {
			out = append(out, OmittedItem{kind, own, reason, code})
			continue
		}
		seen[own] = true
		name := own
		if !sameBytes(s.Original, s.Definition) {
			name = rawjson.GetString(s.Definition, member)
		}
		offers = append(offers, offeredItem{own, name, s.Definition, s.OwnArguments, s.HeldReason, s.NextStep})
	}
	return offers, out
}

// matchesOffer reports whether s is the unchanged object of the offer b, shown as received.
func (s VettedItem) matchesOffer(b offeredItem) bool {
	return len(b.ownArguments) == 0 && len(s.OwnArguments) == 0 && b.ownName == b.Name && sameBytes(s.Original,
		s.Definition) && sameBytes(s.Definition, b.Raw)
}
