package vetting

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// The parts of a listing. Results in the store contain these numbers, so they must not change.
const (
	partTools = iota
	partPrompts
	partResources
	partTemplates
	partServer // info, capabilities, instructions
	partCount
	// partSkills is not part of a listing: skills are requested separately.
	partSkills
)

// The indices of the items in partServer. selfNames are the names of these items in notes.
const (
	selfInfo = iota
	selfCapabilities
	selfInstructions
)

var selfNames = [...]string{"info", "capabilities", "instructions"}

// partNouns are the words for the parts in texts for people. partMembers are the JSON members that contain the names of
// the items.
var (
	partNouns   = [partCount]string{"tool", "prompt", "resource", "template", "server"}
	partMembers = [partCount]string{"name", "name", "uri", "uriTemplate", ""}
)

// An itemResult is the result of checking one item of a listing. It exists only for items that were changed or hidden,
// or that have a note.
type itemResult struct {
	Part int `json:"part"`
	At   int `json:"at"`
	// Definition is the changed definition; empty if it is unchanged.
	Definition []byte            `json:"definition,omitempty"`
	Names      map[string]string `json:"names,omitempty"`
	// Did and Why are the note for people: the action and its reason. They are empty if there is no note. LeftOut is
	// the reason for hiding the item; it is empty if the item is shown.
	Did     string `json:"did,omitempty"`
	Why     string `json:"why,omitempty"`
	LeftOut string `json:"out,omitempty"`
	// Slight reports whether the only reason for the note is a guess, see shield.WeighedRule.
	Slight bool `json:"slight,omitempty"`
}

// A listingResult is the result of checking one listing: the version of the rules, and an itemResult for each item that
// was changed or hidden or has a note.
type listingResult struct {
	Rules string `json:"rules"`
	// Digest is the hash of all checked items, including those without an itemResult.
	Digest string       `json:"digest"`
	Items  []itemResult `json:"looks,omitempty"`

	objects [partCount][]json.RawMessage
	// byPlace maps the index of an item to its itemResult. byBytes maps the bytes of an item to its index; it is
	// created when it is first needed.
	byPlace [partCount]map[int]itemResult
	byBytes [partCount]map[string]int
}

// itemsDigest returns a hash of all items, their lengths and their number.
func itemsDigest(all [partCount][]json.RawMessage) string {
	h := sha256.New()
	var size [8]byte
	put := func(n int) {
		binary.LittleEndian.PutUint64(size[:], uint64(n))
		h.Write(size[:])
	}
	for _, list := range all {
		put(len(list))
		for _, raw := range list {
			put(len(raw))
			h.Write(raw)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// parseListingResult parses a stored result. It returns nil if the result was made for other items than all, or is
// invalid.
func parseListingResult(record []byte, all [partCount][]json.RawMessage) *listingResult {
	b := &listingResult{}
	if len(record) == 0 || json.Unmarshal(record, b) != nil || b.Digest != itemsDigest(all) {
		return nil
	}
	for _, l := range b.Items {
		if l.Part < 0 || l.Part >= partCount || l.At < 0 || l.At >= len(all[l.Part]) {
			return nil
		}
	}
	return b.withItems(all)
}

// withItems sets the items for which the result was made, and returns the result.
func (b *listingResult) withItems(all [partCount][]json.RawMessage) *listingResult {
	b.objects = all
	for _, l := range b.Items {
		if b.byPlace[l.Part] == nil {
			b.byPlace[l.Part] = map[int]itemResult{}
		}
		b.byPlace[l.Part][l.At] = l
	}
	return b
}

// find returns the result for an item. It first compares the item at the same index, then searches for the item by its
// bytes. ok is false if the item was not checked. A checked item without changes and notes has the zero itemResult.
func (b *listingResult) find(part, at int, raw json.RawMessage) (itemResult, bool) {
	if b == nil {
		return itemResult{}, false
	}
	if at >= len(b.objects[part]) || !sameBytes(b.objects[part][at], raw) {
		if b.byBytes[part] == nil {
			b.byBytes[part] = make(map[string]int, len(b.objects[part]))
			for i, raw := range b.objects[part] {
				b.byBytes[part][string(raw)] = i
			}
		}
		place, ok := b.byBytes[part][string(raw)]
		if !ok {
			return itemResult{}, false
		}
		at = place
	}
	return b.byPlace[part][at], true
}

// covers reports whether the result was made for exactly these items in this order.
func (b *listingResult) covers(all [partCount][]json.RawMessage) bool {
	for part, list := range all {
		if !slices.EqualFunc(list, b.objects[part], sameBytes) {
			return false
		}
	}
	return true
}

// applyTo changes the listing in s according to the result. all are the checked items, and places are their indices in
// the lists of s.
func (b *listingResult) applyTo(s *Inspection, all [partCount][]json.RawMessage, places [partCount][]int) {
	for part, list := range [...][]deck.VettedItem{s.Tools, s.Prompts, s.Resources, s.Templates} {
		for at, place := range places[part] {
			list[place].Definition = all[part][at]
		}
		for at, l := range b.byPlace[part] {
			shown := &list[places[part][at]]
			if len(l.Definition) > 0 {
				shown.Definition, shown.OwnArguments = l.Definition, l.Names
			}
			if l.LeftOut != "" {
				shown.Definition, shown.OmitReason, shown.Code = nil, l.LeftOut, CodeUnreadable
			}
		}
	}
	own := [3]json.RawMessage(all[partServer])
	for at, l := range b.byPlace[partServer] {
		if len(l.Definition) > 0 || l.LeftOut != "" {
			own[at] = l.Definition
		}
	}
	s.Info, s.Capabilities = own[selfInfo], own[selfCapabilities]
	s.Instructions, _ = rawjson.DecodeString(own[selfInstructions])
	for _, l := range b.Items {
		if l.Did == "" {
			continue
		}
		name := selfNames[l.At%len(selfNames)]
		if l.Part != partServer {
			name = rawjson.GetString(all[l.Part][l.At], partMembers[l.Part])
		}
		s.Notes = append(s.Notes, deck.VettingNote{Kind: partNouns[l.Part], Name: name, Action: l.Did, Why: l.Why,
			Weak: l.Slight})
	}
}
