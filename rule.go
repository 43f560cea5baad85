package drawbridge

import "encoding/json"

// Rules decide which caller may call which card. The rules are tried in order, and the first rule that matches a call
// decides. If no rule matches, Default decides. The zero value denies every call.
type Rules struct {
	Default Effect
	Rules   []Rule
	// Home is the absolute path of the home directory, which replaces "~" at the start of a path; empty if it is
	// unknown.
	Home string
}

// A Rule matches a call that meets all of its conditions; an empty field is not a condition. Its patterns are globs:
// "*" matches any text, "?" matches one character. Matching ignores case and surrounding blanks, except in Paths, Args
// and Resources.
type Rule struct {
	// At is the position of the rule for messages: "file:line".
	At     string
	Effect Effect

	// Tools, Prompts and Resources are patterns for the called item; the name of a resource is its URI. If one of the
	// three fields is set, the rule matches only items whose field is set: a rule with only Tools matches no prompts. A
	// pattern for a tool is compared with "server__tool", "server:tool", the tool's own name and the listed name; one
	// match is sufficient.
	Tools, Prompts, Resources []string
	// Servers are patterns for server names; "drawbridge" stands for the cards that Drawbridge ships.
	Servers []string
	// Methods are MCP methods, such as "tools/call".
	Methods []string
	// Trust lists the trust settings of servers that the rule matches: "trusted", "untrusted", "sandboxed". The trust
	// setting is the member "trust" of a server's configuration.
	Trust []string

	// Callers are patterns for principals. Clients are patterns for the names that client programs declare, which are
	// not verified. Kinds are kinds of caller: "author", "agent", "external", "import", "sandbox".
	Callers, Clients, Kinds []string
	// Scopes are scopes; the caller must hold all of them.
	Scopes []Scope

	// Paths are patterns for the paths in the arguments. In these patterns "*" does not match a slash, "**" does. A
	// rule whose effect is Allow matches only if the arguments contain paths and all of them match. A rule with another
	// effect matches if at least one path matches.
	Paths []string
	// ArgsMatch is a regular expression that must match a part of the text of the arguments. The text is JSON without
	// blanks and with sorted member names.
	ArgsMatch string
	// Args are conditions on single arguments; all of them must be met.
	Args []Condition
	// When is a CEL expression that must be true.
	When string
}

// A Condition tests one argument of a call; all its set fields must be met. An absent argument meets no condition
// except Present == false.
type Condition struct {
	// Name is the argument's name; a dot separates the names of nested objects, as in "options.path".
	Name string
	// Is holds the values that the argument may have, as JSON; Not holds the values that it must not have. A string in
	// Is or Not is a pattern; its matching is case-sensitive.
	Is, Not []json.RawMessage
	// Matches is a regular expression that must match a part of the argument, a string.
	Matches string
	// Above and Below are bounds of the argument, which must be a number greater than Above and less than Below; nil
	// means no bound.
	Above, Below *float64
	// Present requires that the argument is present (true) or absent (false); nil means no requirement.
	Present *bool
}
