package deck

import (
	"bytes"
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// presumedTaskCapabilities is what a server may offer of tasks that was never listed; nil for a caller who asks again.
func presumedTaskCapabilities(caller drawbridge.Caller) json.RawMessage {
	if caller.Era == drawbridge.Modern {
		return nil
	}
	return json.RawMessage(`{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`)
}

// addTaskCapabilities adds to a deck's capabilities what servers offer of tasks, in the caller's form; nil is nothing.
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

// capabilitiesWithoutTasks gives the capabilities of a caller, without an extension that they cannot use: what a
// stateful client declares of modern tasks would have a server answer with one.
func capabilitiesWithoutTasks(caller drawbridge.Caller) json.RawMessage {
	if caller.Era == drawbridge.Modern || !bytes.Contains(caller.Capabilities, []byte("tasks")) {
		return caller.Capabilities
	}
	return rawjson.Apply(caller.Capabilities, rawjson.Drop("extensions", mcp.ExtensionTasks))
}
