// Package cards contains the cards that Drawbridge ships, and the constructor that creates them. A card is a tool that
// Drawbridge itself provides.
//
// A card has a Go type for its arguments, a Go type for its result, a handler, and a Markdown file with its
// description. The control cards show and control Drawbridge itself, see ControlCards. The built-in cards and the app
// cards read and write files, run commands and store lists, see NewCatalogue. They can be called on the command line.
// Clients can call the cards that the configured profile selects.
//
// A card's JSON schemas are generated from its Go types (see New). The arguments that the handler receives, and the
// results that it returns, therefore always match the listed schemas.
//
// A handler receives only checked arguments. For arguments that do not match the schema, the result is a tool error
// that names the argument and its type. A result has a text for people and a value for programs, unless Answer.Raw
// replaces both.
package cards

import "github.com/drawbridge-mcp/drawbridge"

// A CardLister lists the cards of a deck.
type CardLister interface {
	// Cards returns the cards that the caller may call, in listed order. For an unknown caller, it returns no cards.
	Cards(caller drawbridge.Caller) []drawbridge.Spec
}

// ControlCards returns the cards that show and control Drawbridge itself, in listed order. They are listed whatever
// profile is configured. w is nil if no workspace is open.
func ControlCards(d CardLister, servers SignInServers, w Workspace) []drawbridge.Card {
	return []drawbridge.Card{newToolsCard(d), newScopesCard(), newWorkspaceCard(w), newSignInCard(servers)}
}
