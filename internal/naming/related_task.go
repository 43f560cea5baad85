package naming

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// RelatedTaskMarker is a part of the name of the _meta member for a related task. No JSON encoder escapes it, so a
// search for it finds the member in any encoding.
const RelatedTaskMarker = "related-task"

// ReplaceID replaces the id at path by the result of give. If give returns false, the id remains; the receiver cannot
// use such an id.
func ReplaceID(object json.RawMessage, give func(own string) (string, bool), path ...string) json.RawMessage {
	own, ok := rawjson.DecodeString(rawjson.Get(object, path...))
	if ok {
		own, ok = give(own)
	}
	if !ok {
		return object
	}
	return rawjson.Apply(object, rawjson.Put(rawjson.Quote(own), path...))
}

// ReplaceRelatedTaskIDs replaces the ids of related tasks in the _meta of the object, of its member result, and of each
// of its inputRequests.
func ReplaceRelatedTaskIDs(object json.RawMessage, give func(own string) (string, bool)) json.RawMessage {
	object = ReplaceID(object, give, "_meta", mcp.MetaRelatedTask, "taskId")
	object = ReplaceID(object, give, "result", "_meta", mcp.MetaRelatedTask, "taskId")
	if !rawjson.MayContain(rawjson.Get(object, "inputRequests"), RelatedTaskMarker) {
		return object
	}
	return mapMember(object, "inputRequests", func(asked json.RawMessage) json.RawMessage {
		// A single pass, because a server may send any number of requests.
		return rawjson.MapValues(asked, func(m rawjson.Member) json.RawMessage {
			return ReplaceID(m.Value, give, "params", "_meta", mcp.MetaRelatedTask, "taskId")
		})
	})
}
