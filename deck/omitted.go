package deck

import (
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
)

// A NameClash is a name or URI that two servers would have, of which the first in configuration order has it.
type NameClash struct {
	// Kind is "tool", "prompt", "resource", "template" or "skill".
	Kind string
	// Name is what both would be listed by.
	Name string
	// Winner has it; it is empty for a shipped card.
	Winner drawbridge.ServerID
	// Tool is the loser's own name for it, Listed what it is listed by instead; empty where it is not listed.
	Tool, Listed string
}

// OmittedItem is something a server offers that is not on the deck.
type OmittedItem struct {
	// Kind is "tool", "prompt", "resource", "template" or "skill".
	Kind string
	// Name is its own name; empty where it has none.
	Name string
	// Reason says why, for people. Code names it where it was the vetter's: "unexpected", "unreadable", "unvetted".
	Reason, Code string
}

// addedSince are those of all that were not there before: of notes, of what was left out. There may be ten thousands
// of both.
func addedSince[T comparable](all, before []T) []T {
	known := make(map[T]bool, len(before))
	for _, b := range before {
		known[b] = true
	}
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return known[one] })
}
