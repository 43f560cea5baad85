package label

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

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
