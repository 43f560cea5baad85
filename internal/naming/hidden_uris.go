package naming

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// OwnURI returns the server's own URI for a URI that may be qualified with this server's name.
func OwnURI(server drawbridge.ServerID, uri string) string {
	if id, own, ok := CutServer(uri); ok && id == server {
		return own
	}
	return uri
}

// RemoveHidden returns the object with elements of the array at path removed, if hidden returns true for their URI. If
// nothing changes, it returns the same bytes.
func RemoveHidden(object json.RawMessage, hidden func(uri string) bool, path ...string) json.RawMessage {
	left, some := []byte{'['}, false
	for element := range rawjson.Elements(rawjson.Get(object, path...)) {
		if hidden(rawjson.GetString(element, "uri")) {
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
	return rawjson.Apply(object, rawjson.Put(append(left, ']'), path...))
}
