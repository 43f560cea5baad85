package deck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A VettedItem is one object of a server's list, such as a tool, with the form in which it may be shown to callers. The
// zero value is not shown.
type VettedItem struct {
	// Original is the object as the server sent it.
	Original json.RawMessage
	// Definition is the object in the form that may be shown; it is Original if vetting changed nothing. If Definition
	// is nil, the object is not shown. Then OmitReason explains to people why, and Code is a short code for the reason.
	Definition       json.RawMessage
	OmitReason, Code string
	// OwnArguments maps the names of arguments in Definition to the server's own names, for arguments that vetting
	// renamed.
	OwnArguments map[string]string
	// HeldReason is set if calls of the item are refused until a person decides on it, and is the reason. NextStep
	// names what the person can do. Both are empty for an item that may be called.
	HeldReason, NextStep string
}

// A VettingNote describes to people a change that vetting made to a text of a server, or a problem that it found in the
// text.
type VettingNote struct {
	// Kind is "tool", "prompt", "resource", "template", or "server" for the texts about the server itself. Name is the
	// server's own name of the object.
	Kind, Name string
	// Action is one word: "blanked", "renamed", "stripped", "cut", "flagged", "kept" or "held". Why is the explanation.
	Action, Why string
	// Weak reports whether the text was flagged only by the statistical score of its sentences, which is sometimes
	// wrong. In that case no rule matched, and nothing was removed from the text.
	Weak bool
}

// A VettedListing contains the items and texts of a server's listing in the form in which they may be shown to callers.
type VettedListing struct {
	// Tools, Prompts, Resources and Templates are the items of the listing, in the server's order.
	Tools, Prompts, Resources, Templates []VettedItem
	// Info, Capabilities and Instructions replace the fields of drawbridge.Listing with the same names.
	Info, Capabilities json.RawMessage
	Instructions       string
	Notes              []VettingNote
}

// ShowAll returns a vetted listing in which all items and texts may be shown as the server sent them.
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

// An offeredItem is an object of a server's list that may be shown. makeItems creates an item with a public name from
// it.
type offeredItem struct {
	// ownName is the server's own name or URI of the object. Name is the name or URI in Raw, which is different if
	// vetting changed it. Raw is the definition that may be shown.
	ownName, Name        string
	Raw                  json.RawMessage
	ownArguments         map[string]string
	heldReason, nextStep string
	// notForScripts reports whether scripts in the sandbox may not call the tool.
	notForScripts bool
}

// equal reports whether an item that was made from o can be reused for the offer other.
func (o offeredItem) equal(other offeredItem) bool {
	return o.ownName == other.ownName && o.Name == other.Name && o.heldReason == other.heldReason &&
		o.nextStep == other.nextStep && o.notForScripts == other.notForScripts &&
		sameBytes(o.Raw, other.Raw) && maps.Equal(o.ownArguments, other.ownArguments)
}

// selectOffers returns the objects of a list that may be items on the deck, and the omitted objects with the reasons.
// An object is omitted if vetting does not allow it or if it has no name or URI in member. It is also omitted if there
// are already most offers; 0 means no limit. If member is "name", an object with the name of an earlier object is
// omitted too. before returns the offer that was at a position in the previous list; an unchanged object is not parsed
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

// matchesOffer reports whether s is the object from which the offer b was made. It returns false if vetting changed the
// object.
func (s VettedItem) matchesOffer(b offeredItem) bool {
	return len(b.ownArguments) == 0 && len(s.OwnArguments) == 0 && b.ownName == b.Name && sameBytes(s.Original,
		s.Definition) && sameBytes(s.Definition, b.Raw)
}
