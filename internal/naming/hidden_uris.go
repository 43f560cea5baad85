package naming

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// OwnURI is a URI as the server knows it, whose caller may have said which server is meant.
func OwnURI(server drawbridge.ServerID, uri string) string {
	if id, own, ok := CutServer(uri); ok && id == server {
		return own
	}
	return uri
}

// RemoveHidden gives an object without those elements of the array at path whose URI is hidden. Where none is, it is
// the object itself.
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
