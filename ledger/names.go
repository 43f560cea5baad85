package ledger

import (
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// ServerOf returns the server of a qualified name: what stands before the first "__". It is empty for a name without
// that separator, and for one that begins with it. A name that was shortened, or that has another style, does not tell
// its server; the Server of a [drawbridge.Spec] always does.
func ServerOf(name drawbridge.CardName) drawbridge.ServerID {
	server, _ := split(name)
	return server
}

// ToolOf returns the tool of a qualified name: what stands after the first "__". It is the whole name where [ServerOf]
// finds no server. The Tool of a [drawbridge.Spec] is exact.
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
