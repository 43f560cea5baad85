package declare

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// MaxInstructions is how much is said to every model that reads a deck's instructions, maxSaid how much of it one server says.
const (
	MaxInstructions = 16 << 10
	maxSaid         = 2 << 10
)

// Instructions are what is said about the use of a deck. Its zero value says nothing.
type Instructions struct{ b strings.Builder }

// Say adds what a server says: under its name, cut to 2 KiB. All of it is cut to 16 KiB. It reports
// false where there is no room for more.
func (i *Instructions) Say(server drawbridge.ServerID, text string) bool {
	if text = strings.TrimSpace(text); text == "" {
		return true
	}
	part := fmt.Sprintf("## %s\n%s\n", server, safetext.Truncate(text, maxSaid, safetext.Bytes, "…"))
	if i.b.Len() > 0 {
		part = "\n" + part
	}
	if i.b.Len()+len(part) > MaxInstructions {
		i.b.WriteString(safetext.Truncate(part, MaxInstructions-i.b.Len(), safetext.Bytes, "…"))
		return false
	}
	i.b.WriteString(part)
	return true
}

// Begin adds what the deck says itself, before any server.
func (i *Instructions) Begin(text string) { i.b.WriteString(text) }

// String gives all that was said; empty where nothing was.
func (i *Instructions) String() string { return i.b.String() }

// Capabilities are the ServerCapabilities object of a deck, without extensions and tasks, for who may know of servers with
// those. With one that was never listed, which may offer anything, all is promised.
func Capabilities(servers []json.RawMessage, never bool) json.RawMessage {
	has := func(path ...string) bool {
		return never || slices.ContainsFunc(servers, func(caps json.RawMessage) bool { return wire.Get(caps, path...) != nil })
	}
	subscribes := func(caps json.RawMessage) bool { return string(wire.Get(caps, "resources", "subscribe")) == "true" }
	caps := json.RawMessage(`{"tools":{"listChanged":true}}`)
	if has("prompts") {
		caps = wire.Apply(caps, wire.Put(json.RawMessage(`{"listChanged":true}`), "prompts"))
	}
	if has("resources") {
		value := fmt.Sprintf(`{"listChanged":true,"subscribe":%t}`, never || slices.ContainsFunc(servers, subscribes))
		caps = wire.Apply(caps, wire.Put(json.RawMessage(value), "resources"))
	}
	for _, name := range []string{"completions", "logging"} {
		if has(name) {
			caps = wire.Apply(caps, wire.Put(json.RawMessage(`{}`), name))
		}
	}
	return caps
}
