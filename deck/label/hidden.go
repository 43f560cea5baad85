package label

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// Own is a URI as the server knows it, whose caller may have said which server is meant.
func Own(server drawbridge.ServerID, uri string) string {
	if id, own, ok := CutServer(uri); ok && id == server {
		return own
	}
	return uri
}

// Without gives an object without those elements of the array at path whose URI is hidden. Where none is, it is the object itself.
func Without(object json.RawMessage, hidden func(uri string) bool, path ...string) json.RawMessage {
	left, some := []byte{'['}, false
	for element := range wire.Elements(wire.Get(object, path...)) {
		if hidden(wire.GetText(element, "uri")) {
			some = true
			continue
		}
		if len(left) > 1 {
			left = append(left, ',')
		}
		left = append(left, element...)
	}
	if !some {
		return object
	}
	return wire.Apply(object, wire.Put(append(left, ']'), path...))
}
