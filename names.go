package drawbridge

import (
	"fmt"
	"strings"
)

// A ServerID is the name of one server in the configuration: 1 to 100 characters of [A-Za-z0-9_.-]. It must not contain
// "__", which separates the server and the tool in a card's name. OwnServer is reserved.
type ServerID string

// MaxServerID is the maximum number of characters in a ServerID.
const MaxServerID = 100

// A NameError is one sentence that tells a person why a name is invalid.
type NameError string

// Error returns the sentence.
func (e NameError) Error() string { return string(e) }

// Validate returns a NameError if id cannot name a mounted server, else nil.
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

// OwnServer is the server name that rules, lists and audit records use for Drawbridge's own tools.
const OwnServer ServerID = "drawbridge"

// Reserved reports whether id is OwnServer, ignoring case and any "_", "-", "." or space at either end. The names of a
// server's cards omit these characters, so the cards of such a server would look like Drawbridge's own.
func (id ServerID) Reserved() bool {
	bare := strings.Trim(string(id), "_-. ")
	return strings.EqualFold(bare, string(OwnServer))
}

// nameChars are the characters that the protocol allows in the name of a card.
const nameChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

// NameSeparator separates server and tool in a qualified name.
const NameSeparator = "__"

// A CardName is the name under which a card is listed and called.
type CardName string

// A Scope is a right that a card requires and that a caller may hold, such as "mcp:github". A caller's scope that ends
// in "*" covers every scope with its prefix; "*" alone covers all.
type Scope string

// Covers reports whether a caller that holds s also has the right want.
func (s Scope) Covers(want Scope) bool {
	if prefix, ok := strings.CutSuffix(string(s), "*"); ok {
		return strings.HasPrefix(string(want), prefix)
	}
	return s == want
}

// ServerScope returns the scope that the cards of a mounted server require.
func ServerScope(id ServerID) Scope { return Scope("mcp:" + string(id)) }
