package naming

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// RelatedTaskMarker is a part of the name of the _meta member that contains the id of a related task. No JSON encoder
// escapes these characters. Therefore a JSON text without this marker has no such member.
const RelatedTaskMarker = "related-task"

// ReplaceID replaces the string at path, an id, by the result of give. If there is no string at path, or if give
// returns false, the object is returned unchanged. An unchanged id is useless to the receiver, which knows only the ids
// from give.
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

// ReplaceRelatedTaskIDs replaces the ids of related tasks by the results of give. It replaces them in the _meta of the
// object, in the _meta of its member result, and in the params of each of its inputRequests.
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
