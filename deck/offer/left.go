package offer

import "github.com/drawbridge-mcp/drawbridge"

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
