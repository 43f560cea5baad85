package naming

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// RelatedTaskMarker is the part of the name of _meta's member for a task that no encoder escapes.
const RelatedTaskMarker = "related-task"

// ReplaceID puts what give says in the place of the id at path. An id without a ticket stays: it opens nothing.
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

// ReplaceRelatedTaskIDs does the same where something says by _meta which task it belongs to: at its top, and in the
// modern form in the result and in the questions of a task.
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
