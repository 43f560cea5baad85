package deck

import (
	"bytes"
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// presumedTaskCapabilities returns the task capabilities that a server without a listing may have. It returns nil for a
// stateless caller, because such a caller requests the capabilities again later.
func presumedTaskCapabilities(caller drawbridge.Caller) json.RawMessage {
	if caller.Era == drawbridge.Modern {
		return nil
	}
	return json.RawMessage(`{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`)
}

// addTaskCapabilities adds the servers' task capabilities to caps, in the form of the caller's protocol. A nil offer
// adds nothing.
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

// capabilitiesWithoutTasks returns the caller's capabilities. For a stateful client it removes modern tasks, because
// otherwise a server might answer with a task that the client cannot use.
func capabilitiesWithoutTasks(caller drawbridge.Caller) json.RawMessage {
	if caller.Era == drawbridge.Modern || !bytes.Contains(caller.Capabilities, []byte("tasks")) {
		return caller.Capabilities
	}
	return rawjson.Apply(caller.Capabilities, rawjson.Drop("extensions", mcp.ExtensionTasks))
}
