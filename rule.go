package drawbridge

import "encoding/json"

// Rules decide which caller may call which card. They are tried in order, and the first rule that matches a call
// decides. Default applies if none matches. The zero value denies everything.
type Rules struct {
	Default Effect
	Rules   []Rule
	// Home is the absolute path of the home directory, which replaces "~" at the start of a path; empty if unknown.
	Home string
}

// A Rule matches a call that meets all of its conditions; an empty field is not a condition. Its patterns are globs:
// "*" matches any text, "?" matches one character. Matching ignores case and surrounding blanks, except in Paths, Args
// and Resources.
type Rule struct {
	// At is the position of the rule for messages: "file:line".
	At     string
	Effect Effect

	// Tools, Prompts and Resources are patterns for the called item; the name of a resource is its URI. A rule with any
	// of these three fields matches only calls of the kinds that it lists. A pattern for a tool is compared with
	// "server__tool", "server:tool", the tool's own name and the listed name.
	Tools, Prompts, Resources []string
	// Servers are patterns for server names; "drawbridge" stands for the cards that Drawbridge ships.
	Servers []string
	// Methods are MCP methods, such as "tools/call".
	Methods []string
	// Trust holds values of a server's "trust" member: "trusted", "untrusted", "sandboxed".
	Trust []string

	// Callers are patterns for principals. Clients are patterns for the names that client programs declare, which are
	// not verified. Kinds are kinds of caller: "author", "agent", "external", "import", "sandbox".
	Callers, Clients, Kinds []string
	// Scopes are scopes that the caller must hold, all of them.
	Scopes []Scope

	// Paths are patterns for the paths in the arguments. In these patterns "*" does not match a slash, "**" does. A
	// rule that allows matches only if the call has paths and all of them match. Any other rule matches if at least one
	// path matches.
	Paths []string
	// ArgsMatch is a regular expression that must match a part of the arguments. The arguments are written as JSON
	// without blanks and with sorted names.
	ArgsMatch string
	// Args are conditions on single arguments; all of them must be met.
	Args []Condition
	// When is a CEL expression that must be true.
	When string
}

// A Condition tests one argument. An absent argument meets no condition except Present == false.
type Condition struct {
	// Name is the argument's name; a dot separates the names of nested objects, as in "options.path".
	Name string
	// Is holds the allowed values as JSON, and Not the forbidden values. A string is a pattern; its matching is
	// case-sensitive.
	Is, Not []json.RawMessage
	// Matches is a regular expression that must match a part of a string.
	Matches string
	// Above and Below bound a number; nil means no bound.
	Above, Below *float64
	// Present requires that the argument is present (true) or absent (false); nil means no requirement.
	Present *bool
}
