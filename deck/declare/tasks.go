package declare

import (
	"bytes"
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

// WithoutTasks gives the capabilities of a caller, without an extension that they cannot use: what a stateful client
// declares of modern tasks would have a server answer with one.
func WithoutTasks(caller drawbridge.Caller) json.RawMessage {
	if caller.Era == drawbridge.Modern || !bytes.Contains(caller.Capabilities, []byte("tasks")) {
		return caller.Capabilities
	}
	return wire.Apply(caller.Capabilities, wire.Drop("extensions", wire.ExtensionTasks))
}
