package deck

import (
	"bytes"
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// presumedTaskCapabilities returns the task capabilities that the deck declares to the caller for a server without a
// listing, whose capabilities are unknown. For a stateful caller these are all task capabilities, because such a caller
// requests capabilities only once. For a stateless caller it returns nil, because such a caller requests them again
// later.
func presumedTaskCapabilities(caller drawbridge.Caller) json.RawMessage {
	if caller.Era == drawbridge.Modern {
		return nil
	}
	return json.RawMessage(`{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`)
}

// addTaskCapabilities returns caps with task capabilities added, in the form of the caller's protocol. offers are the
// task capabilities of the servers; nil for a server without tasks. For a stateful caller it adds each capability that
// any server has. For a stateless caller it adds the capabilities of the first server with tasks.
func addTaskCapabilities(caller drawbridge.Caller, caps json.RawMessage, offers []json.RawMessage) json.RawMessage {
	modern := caller.Era == drawbridge.Modern
	if !modern && caller.Protocol != "" && caller.Protocol < mcp.Version20251125 {
		return caps
	}
	for _, offered := range offers {
		if modern {
			if offered != nil {
				return rawjson.Apply(caps, rawjson.Put(offered, "extensions", mcp.ExtensionTasks))
			}
			continue
		}
		for _, path := range [][]string{{"list"}, {"cancel"}, {"requests", "tools", "call"}} {
			if rawjson.Get(offered, path...) != nil {
				caps = rawjson.Apply(caps, rawjson.Put(json.RawMessage(`{}`), append([]string{"tasks"}, path...)...))
			}
		}
	}
	return caps
}

// capabilitiesWithoutTasks returns the capabilities of the caller for a request to a server. For a stateful client, it
// removes the modern tasks extension. Otherwise a server might answer with a modern task, which the methods of the
// client's protocol cannot access.
func capabilitiesWithoutTasks(caller drawbridge.Caller) json.RawMessage {
	if caller.Era == drawbridge.Modern || !bytes.Contains(caller.Capabilities, []byte("tasks")) {
		return caller.Capabilities
	}
	return rawjson.Apply(caller.Capabilities, rawjson.Drop("extensions", mcp.ExtensionTasks))
}
