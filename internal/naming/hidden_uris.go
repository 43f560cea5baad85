package naming

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// OwnURI returns the server's own URI. If uri is qualified with this server's name, the qualification is removed;
// otherwise the result is uri.
func OwnURI(server drawbridge.ServerID, uri string) string {
	if id, own, ok := CutServer(uri); ok && id == server {
		return own
	}
	return uri
}

// RemoveHidden returns the object without some elements of the array at path: those for whose member "uri" the function
// hidden returns true. If there is no such element, it returns the same bytes.
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
