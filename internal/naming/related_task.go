package naming

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// RelatedTaskMarker is the part of the _meta member for a related task that every encoder leaves unescaped.
const RelatedTaskMarker = "related-task"

// ReplaceID replaces the id at path by the result of give. It keeps an id for which give returns false; such an id
// opens nothing.
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

// ReplaceRelatedTaskIDs replaces related task ids in _meta: at the top, in the result of a modern task, and in its
// input requests.
func ReplaceRelatedTaskIDs(object json.RawMessage, give func(own string) (string, bool)) json.RawMessage {
	object = ReplaceID(object, give, "_meta", mcp.MetaRelatedTask, "taskId")
	object = ReplaceID(object, give, "result", "_meta", mcp.MetaRelatedTask, "taskId")
	if !rawjson.MayContain(rawjson.Get(object, "inputRequests"), RelatedTaskMarker) {
		return object
	}
	return mapMember(object, "inputRequests", func(asked json.RawMessage) json.RawMessage {
		// in one pass: how many there are is the server's to say
		return rawjson.MapValues(asked, func(m rawjson.Member) json.RawMessage {
			return ReplaceID(m.Value, give, "params", "_meta", mcp.MetaRelatedTask, "taskId")
		})
	})
}
