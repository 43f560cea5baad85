package declare

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// AnyTasks is what a server may offer of tasks that was never listed; nil for a caller who asks again.
func AnyTasks(caller drawbridge.Caller) json.RawMessage {
	if caller.Era == drawbridge.Modern {
		return nil
	}
	return json.RawMessage(`{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`)
}

// Tasks adds to a deck's capabilities what servers offer of tasks, in the caller's form; nil is nothing.
func Tasks(caller drawbridge.Caller, caps json.RawMessage, offers []json.RawMessage) json.RawMessage {
	modern := caller.Era == drawbridge.Modern
	if !modern && caller.Protocol != "" && caller.Protocol < wire.Version20251125 {
		return caps
	}
	for _, offered := range offers {
		if modern {
			if offered != nil {
				return wire.Apply(caps, wire.Put(offered, "extensions", wire.ExtensionTasks))
			}
			continue
		}
		for _, path := range [][]string{{"list"}, {"cancel"}, {"requests", "tools", "call"}} {
			if wire.Get(offered, path...) != nil {
				caps = wire.Apply(caps, wire.Put(json.RawMessage(`{}`), append([]string{"tasks"}, path...)...))
			}
		}
	}
	return caps
}
