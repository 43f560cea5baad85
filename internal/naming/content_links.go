package naming

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// RewriteLinks returns the result of a method with public URIs in its content blocks. It rewrites the URI of each block
// that links to a resource or embeds one. public returns the public URI for a server's own URI. If nothing changes,
// RewriteLinks returns the same bytes.
func RewriteLinks(method string, result json.RawMessage, public func(own string) string) json.RawMessage {
	block := func(b json.RawMessage) json.RawMessage { return rewriteBlockLink(b, public) }
	switch method {
	case mcp.MethodToolsCall, mcp.MethodTasksResult:
		return MapElements(result, "content", block)
	case mcp.MethodTasksGet:
		return mapMember(result, "result", func(inner json.RawMessage) json.RawMessage {
			return MapElements(inner,
				"content", block)
		})
	case mcp.MethodPromptsGet:
		return MapElements(result, "messages", func(message json.RawMessage) json.RawMessage {
			return mapMember(message,
				"content", block)
		})
	}
	return result
}

// rewriteBlockLink returns a content block with a public URI. A block that neither links to a resource nor embeds one
// is returned unchanged.
func rewriteBlockLink(block json.RawMessage, public func(own string) string) json.RawMessage {
	switch rawjson.GetString(block, "type") {
	case "resource_link":
		return MapURI(block, public, "uri")
	case "resource":
		return MapURI(block, public, "resource", "uri")
	}
	return block
}
