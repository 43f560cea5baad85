package drawbridge

import "encoding/json"

// Rules decide which caller may call which card. They are tried in order, and the first rule that matches a call
// decides. Default applies if none matches. The zero value denies everything.
type Rules struct {
	Default Effect
	Rules   []Rule
	// Home is the absolute path that "~/" stands for in paths; empty if it is not known.
	Home string
}

// A Rule matches a call that meets all of its conditions; an empty field is not a condition. Its patterns are globs:
// "*" stands for any text, "?" for one character. They ignore case and surrounding blanks, except in Paths, Args and
// Resources.
type Rule struct {
	// At is the rule's position, "file:line", for people.
	At     string
	Effect Effect

	// Tools, Prompts and Resources are names of called items; a resource's name is its URI. A rule that names any of
	// the three matches nothing else. A tool is known by "server__tool", "server:tool", its own name, and the name it
	// is listed by.
	Tools, Prompts, Resources []string
	// Servers are server names; "drawbridge" stands for the cards that Drawbridge ships.
	Servers []string
	// Methods are MCP methods, such as "tools/call".
	Methods []string
	// Trust holds values of a server's "trust" member: "trusted", "untrusted", "sandboxed".
	Trust []string

	// Callers are principals. Clients are names that client programs claim for themselves. Kinds are kinds of caller:
	// "author", "agent", "external", "import", "sandbox".
	Callers, Clients, Kinds []string
	// Scopes must all be held.
	Scopes []Scope

	// Paths are patterns for the paths in the arguments: "*" stops at a slash there, "**" does not. An allowing rule
	// matches if the call has paths and all of them match; any other rule matches if one path does.
	Paths []string
	// ArgsMatch is a regular expression searched in the arguments, written as JSON without blanks and with sorted
	// names.
	ArgsMatch string
	// Args are conditions that must all hold.
	Args []Condition
	// When is a CEL expression that must be true.
	When string
}

// A Condition tests one argument. An absent argument meets no condition except Present == false.
type Condition struct {
	// Name is the argument's name; a dot leads into an object.
	Name string
	// Is holds the allowed values as JSON; a string is a pattern in which case matters. Not holds the forbidden values.
	Is, Not []json.RawMessage
	// Matches is a regular expression that must match a part of a string.
	Matches string
	// Above and Below bound a number; nil means no bound.
	Above, Below *float64
	// Present requires that the argument is there (true) or absent (false); nil requires neither.
	Present *bool
}
