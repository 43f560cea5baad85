package ledger

import (
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// ServerOf returns the server in a qualified name: the text before the first "__". It is empty if the name has no "__"
// or begins with it. For a name that was shortened or has another style, the result may be wrong; use the Server of a
// [drawbridge.Spec] instead.
func ServerOf(name drawbridge.CardName) drawbridge.ServerID {
	server, _ := split(name)
	return server
}

// ToolOf returns the tool in a qualified name: the text after the first "__". If [ServerOf] returns no server, ToolOf
// returns the whole name. For a name that was shortened or has another style, the result may be wrong; use the Tool of
// a [drawbridge.Spec] instead.
func ToolOf(name drawbridge.CardName) string {
	_, tool := split(name)
	return tool
}

func split(name drawbridge.CardName) (drawbridge.ServerID, string) {
	server, tool, ok := strings.Cut(string(name), drawbridge.NameSeparator)
	if !ok || server == "" {
		return "", string(name)
	}
	return drawbridge.ServerID(server), tool
}
