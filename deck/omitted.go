package deck

import (
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
)

// A NameClash is a name or URI of two servers. The first in configuration order keeps it.
type NameClash struct {
	// Kind is "tool", "prompt", "resource", "template" or "skill".
	Kind string
	// Name is the name that both would have.
	Name string
	// Winner is the server that keeps it; empty for a shipped card.
	Winner drawbridge.ServerID
	// Tool is the loser's own name for the item. Listed is the name under which it is listed instead; empty if it is
	// not listed.
	Tool, Listed string
}

// An OmittedItem is an item of a server that is not on the deck.
type OmittedItem struct {
	// Kind is "tool", "prompt", "resource", "template" or "skill".
	Kind string
	// Name is its own name; empty where it has none.
	Name string
	// Reason is for people. Code is set for a decision of the vetter: "unexpected", "unreadable" or "unvetted".
	Reason, Code string
}

// addedSince returns the entries of all that are not in before. Either may have tens of thousands of entries.
func addedSince[T comparable](all, before []T) []T {
	known := make(map[T]bool, len(before))
	for _, b := range before {
		known[b] = true
	}
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return known[one] })
}
