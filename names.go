package drawbridge

import (
	"fmt"
	"strings"
)

// A ServerID names one mounted server, as the configuration has it: 1 to 100 characters of [A-Za-z0-9_.-], without
// "__", which separates a server from its tool in a card's name. OwnServer is reserved.
type ServerID string

// MaxServerID is the most characters that a ServerID may have.
const MaxServerID = 100

// A NameError is an error for a person: it says what is wrong with a name that they wrote.
type NameError string

// Error gives the sentence.
func (e NameError) Error() string { return string(e) }

// Validate returns why id cannot name a mounted server, as a NameError, or nil.
func (id ServerID) Validate() error {
	switch {
	case strings.TrimSpace(string(id)) == "":
		return NameError("Server name cannot be empty")
	case len(id) > MaxServerID:
		return NameError(fmt.Sprintf("Server name is too long (max %d characters)", MaxServerID))
	case strings.Trim(string(id), nameChars+".") != "":
		return NameError("Server name can only contain letters, numbers, dash, underscore, and dot")
	case strings.Contains(string(id), NameSeparator):
		return NameError(fmt.Sprintf("Server name cannot contain %q", NameSeparator))
	case id.Reserved():
		return NameError(
			fmt.Sprintf("Server name %q is reserved for the tools of Drawbridge itself; choose another name", id))
	}
	return nil
}

// OwnServer is the name by which rules, lists and records know the tools that Drawbridge itself ships.
const OwnServer ServerID = "drawbridge"

// Reserved reports whether id is OwnServer, or becomes it in the name of a card: in any case, and with other
// characters around it.
func (id ServerID) Reserved() bool {
	bare := strings.Trim(string(id), "_-. ")
	return strings.EqualFold(bare, string(OwnServer))
}

// nameChars are the characters that a card's name may have on the wire.
const nameChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

// NameSeparator separates server and tool in a qualified name.
const NameSeparator = "__"

// A CardName is the name under which a card is listed and called.
type CardName string

// A Scope is a right that a card requires and a caller holds: "mcp:github". A caller's scope that ends in "*" covers
// every scope with its prefix; "*" alone covers all.
type Scope string

// Covers says whether holding s is holding want.
func (s Scope) Covers(want Scope) bool {
	if prefix, ok := strings.CutSuffix(string(s), "*"); ok {
		return strings.HasPrefix(string(want), prefix)
	}
	return s == want
}

// ServerScope is the scope that the cards of a mounted server require.
func ServerScope(id ServerID) Scope { return Scope("mcp:" + string(id)) }
