package drawbridge

import "encoding/json"

// Rules say who may do what with which card. They are asked in their order, and the first that matches a call decides;
// where none does, Default does. The zero value denies everything.
type Rules struct {
	Default Effect
	Rules   []Rule
	// Home is the absolute path that "~/" stands for in paths; empty where nobody knows it.
	Home string
}

// A Rule matches the calls that have all that it names; what it does not name does not matter to it. Its patterns are
// globs: "*" stands for any text, "?" for one character. But for those of Paths, Args and Resources they ignore case
// and blanks around them.
type Rule struct {
	// At is where it is written, "file:line", for people.
	At     string
	Effect Effect

	// Tools, Prompts and Resources are names of what is called; a resource's is its URI. A rule that names any of the
	// three is about nothing else. A tool is known by "server__tool", by "server:tool", by its own name, and by the
	// name that it is listed by.
	Tools, Prompts, Resources []string
	// Servers are names of servers; that of the cards that Drawbridge ships is "drawbridge".
	Servers []string
	// Methods are MCP methods, such as "tools/call".
	Methods []string
	// Trust has the words of the row's "trust": "trusted", "untrusted", "sandboxed".
	Trust []string

	// Callers are principals, Clients what programs call themselves, which is only their word. Kinds are doors:
	// "author", "agent", "external", "import", "sandbox".
	Callers, Clients, Kinds []string
	// Scopes must all be held.
	Scopes []Scope

	// Paths are patterns of the paths in the arguments: "*" stops at a slash there, "**" does not. An allowing rule
	// matches where all paths of a call do, and there is one; any other rule where one does.
	Paths []string
	// ArgsMatch is a regular expression that is found in the arguments, written as JSON without blanks and with sorted
	// names.
	ArgsMatch string
	// Args are conditions that must all hold.
	Args []Condition
	// When is an expression in CEL that must be true.
	When string
}

// A Condition is on one argument. One that is not there meets no condition but that it is not there.
type Condition struct {
	// Name is the argument's; a dot leads into an object.
	Name string
	// Is has what it may be, as JSON: a text is a pattern, in which case matters. Not has what it must not be.
	Is, Not []json.RawMessage
	// Matches is a regular expression for a text, which need be found in it only.
	Matches string
	// Above and Below bound a number; nil is no bound.
	Above, Below *float64
	// Present says whether it is there at all; nil where that is not asked.
	Present *bool
}
