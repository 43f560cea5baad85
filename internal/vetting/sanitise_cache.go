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

// The parts of a listing, in the order that records count them by.
const (
	partTools = iota
	partPrompts
	partResources
	partTemplates
	partServer // info, capabilities, instructions
	partCount
	// partSkills are no part of a listing: they are asked for by themselves.
	partSkills
)

// The places of what a server says of itself, and their names.
const (
	selfInfo = iota
	selfCapabilities
	selfInstructions
)

var selfNames = [...]string{"info", "capabilities", "instructions"}

// words are the parts for people, members what names an object of each.
var (
	partNouns   = [partCount]string{"tool", "prompt", "resource", "template", "server"}
	partMembers = [partCount]string{"name", "name", "uri", "uriTemplate", ""}
)

// A itemResult is what came of looking at one object that is not shown as it came, or of which something was noted.
type itemResult struct {
	Part int `json:"part"`
	At   int `json:"at"`
	// Definition is what is shown; empty for the object as it came.
	Definition []byte            `json:"definition,omitempty"`
	Names      map[string]string `json:"names,omitempty"`
	// Did and Why are the note; empty for none. Out leaves the object out, and says why.
	Did     string `json:"did,omitempty"`
	Why     string `json:"why,omitempty"`
	LeftOut string `json:"out,omitempty"`
	// Slight is that of the note.
	Slight bool `json:"slight,omitempty"`
}

// A listingResult is what came of looking at one listing: by which rules, and all that is not shown as it came.
type listingResult struct {
	Rules string `json:"rules"`
	// Digest is that of the objects that were looked at: those that nobody looked at are not in the book.
	Digest string       `json:"digest"`
	Items  []itemResult `json:"looks,omitempty"`

	objects [partCount][]json.RawMessage
	// byPlace has the looks; byBytes the place of each object, made when it is first needed.
	byPlace [partCount]map[int]itemResult
	byBytes [partCount]map[string]int
}

// itemsDigest is that of all objects, with their lengths and numbers.
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

// parseListingResult is the book of a record, if it is about these objects.
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

// withItems has the book say what it is about.
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

// find gives what came of looking at an object, which probably stands where it stood. It says false for one that is
// not in the book.
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

// covers says whether the book is about just these objects in their order.
func (b *listingResult) covers(all [partCount][]json.RawMessage) bool {
	for part, list := range all {
		if !slices.EqualFunc(list, b.objects[part], sameBytes) {
			return false
		}
	}
	return true
}

// applyTo shows the objects, which the book is about, at their places in the sight.
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
