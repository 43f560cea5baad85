package deck

import (
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
)

// A NameClash is a name or URI that two servers want. Only one of them can have it.
type NameClash struct {
	// Kind is "tool", "prompt", "resource", "template" or "skill".
	Kind string
	// Name is the name or URI that both servers want.
	Name string
	// Winner is the server that has the name; empty for a shipped card.
	Winner drawbridge.ServerID
	// Tool is the name that the other server uses for its item. Listed is the name under which this item is listed
	// instead; empty if it is not listed.
	Tool, Listed string
}

// An OmittedItem is a server's item that is not on the deck.
type OmittedItem struct {
	// Kind is "tool", "prompt", "resource", "template" or "skill".
	Kind string
	// Name is the server's own name of the item; empty if it has none.
	Name string
	// Reason explains the omission to people. Code is set if the vetter omitted the item: "unexpected", "unreadable" or
	// "unvetted".
	Reason, Code string
}

// addedSince returns the entries of all that are not in before. It uses a map, because both may have tens of thousands
// of entries.
func addedSince[T comparable](all, before []T) []T {
	known := make(map[T]bool, len(before))
	for _, b := range before {
		known[b] = true
	}
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return known[one] })
}
