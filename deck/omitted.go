package deck

import (
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
)

// A NameClash reports that the items of two servers would have the same public name or URI. Only one of the two items
// gets it.
type NameClash struct {
	// Kind is "tool", "prompt", "resource", "template" or "skill".
	Kind string
	// Name is the public name or URI that both items would have.
	Name string
	// Winner is the server whose item has the name; empty for a shipped card.
	Winner drawbridge.ServerID
	// Tool is the own name of the other server's item, which did not get the name. Listed is the name under which this
	// item is listed instead; it is empty if the item is not listed.
	Tool, Listed string
}

// An OmittedItem is a server's item that is not on the deck.
type OmittedItem struct {
	// Kind is "tool", "prompt", "resource", "template" or "skill".
	Kind string
	// Name is the server's own name of the item; empty if it has none.
	Name string
	// Reason explains to people why the item is not on the deck. Code is set if vetting omitted the item; it is a short
	// code for the reason, such as "unexpected" or "unvetted".
	Reason, Code string
}

// addedSince returns the elements of all that are not in before. It builds a map, because both slices may have tens of
// thousands of elements.
func addedSince[T comparable](all, before []T) []T {
	known := make(map[T]bool, len(before))
	for _, b := range before {
		known[b] = true
	}
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return known[one] })
}
