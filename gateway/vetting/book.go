package vetting

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// The parts of a listing, in the order that records count them by.
const (
	tools = iota
	prompts
	resources
	templates
	self // info, capabilities, instructions
	parts
	// skills are no part of a listing: they are asked for by themselves.
	skills
)

// The places of what a server says of itself, and their names.
const (
	info = iota
	capabilities
	instructions
)

var selves = [...]string{"info", "capabilities", "instructions"}

// words are the parts for people, members what names an object of each.
var (
	words   = [parts]string{"tool", "prompt", "resource", "template", "server"}
	members = [parts]string{"name", "name", "uri", "uriTemplate", ""}
)

// A look is what came of looking at one object that is not shown as it came, or of which something was noted.
type look struct {
	Part int `json:"part"`
	At   int `json:"at"`
	// Definition is what is shown; empty for the object as it came.
	Definition []byte            `json:"definition,omitempty"`
	Names      map[string]string `json:"names,omitempty"`
	// Did and Why are the note; empty for none. Out leaves the object out, and says why.
	Did string `json:"did,omitempty"`
	Why string `json:"why,omitempty"`
	Out string `json:"out,omitempty"`
	// Slight is that of the note.
	Slight bool `json:"slight,omitempty"`
}

// A book is what came of looking at one listing: by which rules, and all that is not shown as it came.
type book struct {
	Rules string `json:"rules"`
	// Digest is that of the objects that were looked at: those that nobody looked at are not in the book.
	Digest string `json:"digest"`
	Looks  []look `json:"looks,omitempty"`

	objects [parts][]json.RawMessage
	// byPlace has the looks; byBytes the place of each object, made when it is first needed.
	byPlace [parts]map[int]look
	byBytes [parts]map[string]int
}

// digest is that of all objects, with their lengths and numbers.
func digest(all [parts][]json.RawMessage) string {
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

// opened is the book of a record, if it is about these objects.
func opened(record []byte, all [parts][]json.RawMessage) *book {
	b := &book{}
	if len(record) == 0 || json.Unmarshal(record, b) != nil || b.Digest != digest(all) {
		return nil
	}
	for _, l := range b.Looks {
		if l.Part < 0 || l.Part >= parts || l.At < 0 || l.At >= len(all[l.Part]) {
			return nil
		}
	}
	return b.about(all)
}

// about has the book say what it is about.
func (b *book) about(all [parts][]json.RawMessage) *book {
	b.objects = all
	for _, l := range b.Looks {
		if b.byPlace[l.Part] == nil {
			b.byPlace[l.Part] = map[int]look{}
		}
		b.byPlace[l.Part][l.At] = l
	}
	return b
}

// find gives what came of looking at an object, which probably stands where it stood. It says false for one that is not in
// the book.
func (b *book) find(part, at int, raw json.RawMessage) (look, bool) {
	if b == nil {
		return look{}, false
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
			return look{}, false
		}
		at = place
	}
	return b.byPlace[part][at], true
}

// covers says whether the book is about just these objects in their order.
func (b *book) covers(all [parts][]json.RawMessage) bool {
	for part, list := range all {
		if !slices.EqualFunc(list, b.objects[part], sameBytes) {
			return false
		}
	}
	return true
}

// show shows the objects, which the book is about, at their places in the sight.
func (b *book) show(s *Sight, all [parts][]json.RawMessage, places [parts][]int) {
	for part, list := range [...][]deck.Shown{s.Tools, s.Prompts, s.Resources, s.Templates} {
		for at, place := range places[part] {
			list[place].Definition = all[part][at]
		}
		for at, l := range b.byPlace[part] {
			shown := &list[places[part][at]]
			if len(l.Definition) > 0 {
				shown.Definition, shown.Names = l.Definition, l.Names
			}
			if l.Out != "" {
				shown.Definition, shown.Why, shown.Code = nil, l.Out, Unreadable
			}
		}
	}
	own := [3]json.RawMessage(all[self])
	for at, l := range b.byPlace[self] {
		if len(l.Definition) > 0 || l.Out != "" {
			own[at] = l.Definition
		}
	}
	s.Info, s.Capabilities = own[info], own[capabilities]
	s.Instructions, _ = wire.Text(own[instructions])
	for _, l := range b.Looks {
		if l.Did == "" {
			continue
		}
		name := selves[l.At%len(selves)]
		if l.Part != self {
			name = wire.GetText(all[l.Part][l.At], members[l.Part])
		}
		s.Notes = append(s.Notes, deck.Note{Kind: words[l.Part], Name: name, Did: l.Did, Why: l.Why, Slight: l.Slight})
	}
}
