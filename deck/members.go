package deck

import (
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// A ServerSummary describes the items of one server on the deck, and the items that are not on the deck, with the
// reasons.
type ServerSummary struct {
	Server     drawbridge.ServerID
	ConfigHash string
	// Era is the protocol generation of the server. Listed is the time of its listing. Both are zero before the first
	// listing.
	Era    drawbridge.ProtocolEra
	Listed time.Time
	// Cards and Prompts are the listed names of the tools and prompts. Resources and Templates are the numbers of
	// listed resources and templates.
	Cards, Prompts       []drawbridge.CardName
	Resources, Templates int
	// Clashes are the names and URIs of this server's items that another server already has. For skills, they are from
	// the last time that a caller requested skills.
	Clashes []NameClash
	// Omitted are the server's items that are not on the deck.
	Omitted []OmittedItem
	// Notes describe the changes that vetting made to the server's texts.
	Notes []VettingNote
}

// ServerSummaries returns a summary of each configured server, in configuration order.
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
