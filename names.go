package drawbridge

import (
	"fmt"
	"strings"
)

// A ServerID names one mounted server, as the configuration has it: 1 to 100 characters of [A-Za-z0-9_.-], without
// "__", which separates a server from its tool in a card's name.
type ServerID string

// MaxServerID is the most characters that a ServerID may have.
const MaxServerID = 100

// A BadName is an error for a person: it says what is wrong with a name that they wrote.
type BadName string

// Error gives the sentence.
func (e BadName) Error() string { return string(e) }

// Valid says why id cannot name a server, as a BadName, or nil.
func (id ServerID) Valid() error {
	switch {
	case strings.TrimSpace(string(id)) == "":
		return BadName("Server name cannot be empty")
	case len(id) > MaxServerID:
		return BadName(fmt.Sprintf("Server name is too long (max %d characters)", MaxServerID))
	case strings.Trim(string(id), nameChars+".") != "":
		return BadName("Server name can only contain letters, numbers, dash, underscore, and dot")
	case strings.Contains(string(id), Qualifier):
		return BadName(fmt.Sprintf("Server name cannot contain %q", Qualifier))
	}
	return nil
}

// nameChars are the characters that a card's name may have on the wire.
const nameChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

// Qualifier separates server and tool in a qualified name.
const Qualifier = "__"

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
