// Package cards holds the cards that Drawbridge ships, and the constructor they are made with.
//
// A card has a Go type for its arguments, one for its result, a handler, and a Markdown file with its description. The
// control cards show and steer Drawbridge itself, see ControlCards. The built-in cards and the app cards read and write
// files and keep lists, see NewCatalogue. A gateway offers them to the command line and, by a profile, to clients.
//
// A card's JSON schemas are generated from its Go types (see New), so the listed schema, the decoded
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

// ControlCards returns the cards that show and steer Drawbridge itself, in listed order. They are always listed.
func ControlCards(d CardLister, servers SignInServers) []drawbridge.Card {
	return []drawbridge.Card{newToolsCard(d), newScopesCard(), newWorkspaceCard(), newSignInCard(servers)}
}
