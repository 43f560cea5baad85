package deck

import (
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// A ServerSummary is what one server contributes to the deck, and what of it did not get there and why.
type ServerSummary struct {
	Server     drawbridge.ServerID
	ConfigHash string
	// Era is what the server speaks, Listed when it was listed; both are zero before the first listing.
	Era    drawbridge.ProtocolEra
	Listed time.Time
	// Cards and Prompts have the names they are listed by; Resources and Templates count.
	Cards, Prompts       []drawbridge.CardName
	Resources, Templates int
	// Clashes are the names and URIs that this server shares with an earlier one. Skills are asked for when a caller
	// does: theirs are as they were then.
	Clashes []NameClash
	// Omitted is what the server offers that is not on the deck.
	Omitted []OmittedItem
	// Notes are what was done to what is there.
	Notes []VettingNote
}

// ServerSummaries says of each configured server, in configuration order, what it contributes and what of it is not on
// the deck.
func (d *Deck) ServerSummaries() []ServerSummary {
	v := d.view.Load()
	out := make([]ServerSummary, 0, len(v.servers))
	for _, m := range v.servers {
		st := ServerSummary{
			Server: m.ID, ConfigHash: m.ConfigHash, Omitted: slices.Clone(m.omitted), Notes: slices.Clone(m.notes),
			Cards: cardNames(v.tools.itemsOfServer(m.ID)), Prompts: cardNames(v.prompts.itemsOfServer(m.ID)),
			Resources: len(v.resources.itemsOfServer(m.ID)), Templates: len(v.templates.itemsOfServer(m.ID)),
		}
		if m.listing != nil {
			st.Era, st.Listed = m.listing.Era, m.listing.ListedAt
		}
		st.Clashes = v.clashesOf(m.ID)
		for _, s := range v.allIndexes() {
			st.Omitted = append(st.Omitted, s.omitted[m.ID]...)
		}
		clashes, leftOut := d.skillProblems(m.ID)
		st.Clashes, st.Omitted = append(st.Clashes, clashes...), append(st.Omitted, leftOut...)
		out = append(out, st)
	}
	return out
}

func cardNames(items []*item) []drawbridge.CardName {
	out := make([]drawbridge.CardName, 0, len(items))
	for _, it := range items {
		out = append(out, it.spec.Name)
	}
	return out
}
