package label

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// PagePaths are where a tool of MCP Apps names its page: the place of the specification, and the flat key of before.
func PagePaths() [][]string {
	return [][]string{{"_meta", "ui", "resourceUri"}, {"_meta", "ui/resourceUri"}}
}

// AppOnly says whether the "_meta" of a tool lets nobody but the server's own pages use it.
func AppOnly(meta json.RawMessage) bool {
	only := false
	for who := range wire.Elements(wire.Get(meta, "ui", "visibility")) {
		if text, _ := wire.Text(who); text != "app" {
			return false
		}
		only = true
	}
	return only
}

// PagesOf gives the URIs of the pages that a tool names, each once. What is no "ui://" is no page to any host.
func PagesOf(tool json.RawMessage) []string {
	meta := wire.Get(tool, "_meta")
	if meta == nil {
		return nil
	}
	var out []string
	for _, path := range PagePaths() {
		uri := wire.GetText(meta, path[1:]...)
		if strings.HasPrefix(uri, "ui://") && len(uri) <= MaxURI && !slices.Contains(out, uri) {
			out = append(out, uri)
		}
	}
	return out
}

// LinkedBlock gives a block of content with another URI, where it links to a resource or holds one.
func LinkedBlock(block json.RawMessage, public func(own string) string) json.RawMessage {
	switch wire.GetText(block, "type") {
	case "resource_link":
		return ChangeURI(block, public, "uri")
	case "resource":
		return ChangeURI(block, public, "resource", "uri")
	}
	return block
}
