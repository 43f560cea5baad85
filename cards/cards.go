// Package cards holds the cards that Drawbridge ships, and the constructor they are made with.
//
// Each card is one Go file with its types and its handler and one Markdown file with its description. Catalogue lists
// all of them. A card's JSON schemas are generated from its Go types (see New), so the listed schema, the decoded
// arguments and the result cannot disagree.
//
// The package guarantees that a handler gets checked arguments, and that arguments which do not match the schema are
// answered with a tool error naming the argument and its type. Every result has a text for people and a value for
// programs. A card reads and prepares; it cannot write to the workspace.
package cards

import "github.com/drawbridge-mcp/drawbridge"

// A CardLister lists the cards of a deck.
type CardLister interface {
	// Cards returns the cards that the caller may call, in listed order; an unknown caller gets none.
	Cards(caller drawbridge.Caller) []drawbridge.Spec
}

// Catalogue returns every card that Drawbridge ships, in listed order.
func Catalogue(d CardLister, servers SignInServers) []drawbridge.Card {
	return []drawbridge.Card{newToolsCard(d), newScopesCard(), newWorkspaceCard(), newSignInCard(servers)}
}
