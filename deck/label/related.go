package label

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// AboutTask is the part of the name of _meta's member for a task that no encoder escapes.
const AboutTask = "related-task"

// Relabelled puts what give says in the place of the id at path. An id without a ticket stays: it opens nothing.
func Relabelled(object json.RawMessage, give func(own string) (string, bool), path ...string) json.RawMessage {
	own, ok := wire.Text(wire.Get(object, path...))
	if ok {
		own, ok = give(own)
	}
	if !ok {
		return object
	}
	return wire.Apply(object, wire.Put(wire.Quote(own), path...))
}

// Belonging does the same where something says by _meta which task it belongs to: at its top, and in the modern form in
// the result and in the questions of a task.
func Belonging(object json.RawMessage, give func(own string) (string, bool)) json.RawMessage {
	object = Relabelled(object, give, "_meta", wire.MetaRelatedTask, "taskId")
	object = Relabelled(object, give, "result", "_meta", wire.MetaRelatedTask, "taskId")
	if !wire.MayHave(wire.Get(object, "inputRequests"), AboutTask) {
		return object
	}
	return within(object, "inputRequests", func(asked json.RawMessage) json.RawMessage {
		return wire.EachValue(asked, func(m wire.Member) json.RawMessage { // in one pass: how many there are is the server's to say
			return Relabelled(m.Value, give, "params", "_meta", wire.MetaRelatedTask, "taskId")
		})
	})
}
