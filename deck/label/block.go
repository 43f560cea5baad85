package label

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// Linked gives the result of a method with other URIs, in the blocks of content that link to a resource or hold one. Where none
// does, the result is returned itself.
func Linked(method string, result json.RawMessage, public func(own string) string) json.RawMessage {
	block := func(b json.RawMessage) json.RawMessage { return linkedBlock(b, public) }
	switch method {
	case wire.MethodToolsCall, wire.MethodTasksResult:
		return Each(result, "content", block)
	case wire.MethodTasksGet:
		return within(result, "result", func(inner json.RawMessage) json.RawMessage { return Each(inner, "content", block) })
	case wire.MethodPromptsGet:
		return Each(result, "messages", func(message json.RawMessage) json.RawMessage { return within(message, "content", block) })
	}
	return result
}

// linkedBlock gives a block of content with another URI, where it links to a resource or holds one.
func linkedBlock(block json.RawMessage, public func(own string) string) json.RawMessage {
	switch wire.GetText(block, "type") {
	case "resource_link":
		return ChangeURI(block, public, "uri")
	case "resource":
		return ChangeURI(block, public, "resource", "uri")
	}
	return block
}
