package deck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A VettedItem is one object of a server's list and the form in which it may be shown. The zero value is not shown.
type VettedItem struct {
	// Original is the object as the server sent it.
	Original json.RawMessage
	// Definition is the object as it may be shown; it is Original if nothing was changed. If Definition is nil, the object
	// is not shown; OmitReason and Code are the reason.
	Definition       json.RawMessage
	OmitReason, Code string
	// OwnArguments maps the names of arguments in Definition to the server's names, for names that differ.
	OwnArguments map[string]string
	// HeldReason is why calls of a quarantined item are refused. NextStep is how a person can allow them. Both are empty
	// for an item that may be called.
	HeldReason, NextStep string
}

// A VettingNote describes to people a change of a server's text, or a problem that was found in it.
type VettingNote struct {
	// Kind is "tool", "prompt", "resource", "template", or "server" for the texts about the server itself. Name is the
	// server's own name of the object.
	Kind, Name string
	// Action is one word: "blanked", "renamed", "stripped", "cut", "flagged", "kept". Why is the explanation.
	Action, Why string
	// Weak reports whether only the weights of sentences flagged the text, which is sometimes wrong. Then no rule matched
	// and nothing was removed.
	Weak bool
}

// A VettedListing is a listing in the form in which it may be shown.
type VettedListing struct {
	// Tools, Prompts, Resources and Templates are in listed order.
	Tools, Prompts, Resources, Templates []VettedItem
	// Info, Capabilities and Instructions replace the members of the listing with the same names.
	Info, Capabilities json.RawMessage
	Instructions       string
	Notes              []VettingNote
}

// ShowAll returns a vetted listing that shows all items as the server sent them.
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

// An offeredItem is an object of a server that can be an item on the deck.
type offeredItem struct {
	// ownName is the server's name or URI of the object. Name is the name or URI in the definition that is shown.
	ownName, Name        string
	Raw                  json.RawMessage
	ownArguments         map[string]string
	heldReason, nextStep string
	// notForScripts reports whether scripts in the sandbox may not call the tool.
	notForScripts bool
}

// equal reports whether two offers result in the same item.
func (o offeredItem) equal(other offeredItem) bool {
	return o.ownName == other.ownName && o.Name == other.Name && o.heldReason == other.heldReason &&
		o.nextStep == other.nextStep && o.notForScripts == other.notForScripts &&
		sameBytes(o.Raw, other.Raw) && maps.Equal(o.ownArguments, other.ownArguments)
}

// selectOffers returns the offers of a list and the omitted items. Each offer is shown and has a non-empty name in
// member. If member is "name", a name that occurs twice is offered once. There are at most most offers; 0 means no
// limit. before returns the previous offer at a position. If the object at this position is unchanged, it is not parsed
// again.
func selectOffers(kind, member string, list []VettedItem, most int, before func(i int) (offeredItem, bool)) (
	offers []offeredItem, out []OmittedItem) {
	seen := make(map[string]bool, len(list))
	offers = make([]offeredItem, 0, len(list))
	for _, s := range list {
		if b, ok := before(len(offers)); ok && !seen[b.ownName] && (most == 0 || len(offers) < most) &&
			s.matchesOffer(b) {
			seen[b.ownName] = true
			offers = append(offers, offeredItem{ownName: b.ownName, Name: b.Name, Raw: s.Definition,
				heldReason: s.HeldReason, nextStep: s.NextStep})
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
		offers = append(offers, offeredItem{ownName: own, Name: name, Raw: s.Definition,
			ownArguments: s.OwnArguments, heldReason: s.HeldReason, nextStep: s.NextStep})
	}
	return offers, out
}

// matchesOffer reports whether s is the object of the offer b, unchanged and shown as the server sent it.
func (s VettedItem) matchesOffer(b offeredItem) bool {
	return len(b.ownArguments) == 0 && len(s.OwnArguments) == 0 && b.ownName == b.Name && sameBytes(s.Original,
		s.Definition) && sameBytes(s.Definition, b.Raw)
}
