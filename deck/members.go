package deck

import (
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// A MemberStatus is what one server contributes to the deck, and what of it did not get there and why.
type MemberStatus struct {
	Server drawbridge.ServerID
	Row    string
	// Era is what the server speaks, Listed when it was listed; both are zero before the first listing.
	Era    drawbridge.Era
	Listed time.Time
	// Cards and Prompts have the names they are listed by; Resources and Templates count.
	Cards, Prompts       []drawbridge.CardName
	Resources, Templates int
	// Clashes are the names and URIs that this server shares with an earlier one. Skills are asked for when a caller does:
	// theirs are as they were then.
	Clashes []Clash
	// LeftOut is what the server offers that is not on the deck.
	LeftOut []LeftOut
	// Notes are what was done to what is there.
	Notes []Note
}

// A Clash is a name or URI that two servers would have, of which the first in configuration order has it.
type Clash struct {
	// Kind is "tool", "prompt", "resource", "template" or "skill".
	Kind string
	// Name is what both would be listed by.
	Name string
	// Winner has it; it is empty for a shipped card.
	Winner drawbridge.ServerID
	// Tool is the loser's own name for it, Listed what it is listed by instead; empty where it is not listed.
	Tool, Listed string
}

// LeftOut is something a server offers that is not on the deck.
type LeftOut struct {
	// Kind is "tool", "prompt", "resource", "template" or "skill".
	Kind string
	// Name is its own name; empty where it has none.
	Name string
	// Reason says why, for people. Code names it where it was the vetter's: "unexpected", "unreadable", "unvetted".
	Reason, Code string
}

// Members says of each configured server, in configuration order, what it contributes and what of it is not on the deck.
func (d *Deck) Members() []MemberStatus {
	v := d.view.Load()
	out := make([]MemberStatus, 0, len(v.members))
	for _, m := range v.members {
		st := MemberStatus{
			Server: m.ID, Row: m.Row, LeftOut: slices.Clone(m.leftOut), Notes: slices.Clone(m.notes),
			Cards: namesOf(v.tools.of(m.ID)), Prompts: namesOf(v.prompts.of(m.ID)),
			Resources: len(v.resources.of(m.ID)), Templates: len(v.templates.of(m.ID)),
		}
		if m.listing != nil {
			st.Era, st.Listed = m.listing.Era, m.listing.At
		}
		st.Clashes = v.clashesOf(m.ID)
		for _, s := range v.shelves() {
			st.LeftOut = append(st.LeftOut, s.leftOut[m.ID]...)
		}
		clashes, leftOut := d.skillNotes(m.ID)
		st.Clashes, st.LeftOut = append(st.Clashes, clashes...), append(st.LeftOut, leftOut...)
		out = append(out, st)
	}
	return out
}

func namesOf(items []*item) []drawbridge.CardName {
	out := make([]drawbridge.CardName, 0, len(items))
	for _, it := range items {
		out = append(out, it.spec.Name)
	}
	return out
}
