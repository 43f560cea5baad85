package naming

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// RewriteLinks gives the result of a method with other ResourceURIs, in the blocks of content that link to a resource
// or hold one. Where none does, the result is returned itself.
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

// rewriteBlockLink gives a block of content with another URI, where it links to a resource or holds one.
func rewriteBlockLink(block json.RawMessage, public func(own string) string) json.RawMessage {
	switch rawjson.GetString(block, "type") {
	case "resource_link":
		return MapURI(block, public, "uri")
	case "resource":
		return MapURI(block, public, "resource", "uri")
	}
	return block
}
