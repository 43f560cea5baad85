package deck

import (
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck/offer"
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

// What of a server is not on the deck as it would be.
type (
	// Clash is a name or URI that two servers would have, LeftOut something that is not on the deck.
	Clash   = offer.Clash
	LeftOut = offer.LeftOut
)

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
