package deck

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// maxInstructions is how much is said to every model that reads a deck's instructions, maxServerInstructions how much
// of it one server says.
const (
	// maxInstructions bounds the instructions of a deck, and maxServerInstructions one server's part, in bytes.
	maxInstructions       = 16 << 10
	maxServerInstructions = 2 << 10
)

// An instructionsBuilder joins the instructions of a deck. The zero value is empty.
type instructionsBuilder struct{ b strings.Builder }

// addServer adds a server's instructions under its name, truncated to 2 KiB, and the whole to 16 KiB. It returns false
// if the text is full.
func (i *instructionsBuilder) addServer(server drawbridge.ServerID, text string) bool {
	if text = strings.TrimSpace(text); text == "" {
		return true
	}
	part := fmt.Sprintf("## %s\n%s\n", server, safetext.Truncate(text, maxServerInstructions, safetext.Bytes, "…"))
	if i.b.Len() > 0 {
		part = "\n" + part
	}
	if i.b.Len()+len(part) > maxInstructions {
		i.b.WriteString(safetext.Truncate(part, maxInstructions-i.b.Len(), safetext.Bytes, "…"))
		return false
	}
	i.b.WriteString(part)
	return true
}

// addPreamble adds a text of the deck's own, before any server.
func (i *instructionsBuilder) addPreamble(text string) { i.b.WriteString(text) }

// String returns the joined instructions.
func (i *instructionsBuilder) String() string { return i.b.String() }

// serverCapabilities returns the ServerCapabilities object for these servers' capabilities, without extensions and
// tasks. If never is set, a server was never listed and may offer anything, so everything is promised.
func serverCapabilities(servers []json.RawMessage, never bool) json.RawMessage {
	has := func(path ...string) bool {
		return never || slices.ContainsFunc(servers, func(caps json.RawMessage) bool {
			return rawjson.Get(caps,
				path...) != nil
		})
	}
	subscribes := func(caps json.RawMessage) bool {
		return string(rawjson.Get(caps, "resources",
			"subscribe")) == "true"
	}
	caps := json.RawMessage(`{"tools":{"listChanged":true}}`)
	if has("prompts") {
		caps = rawjson.Apply(caps, rawjson.Put(json.RawMessage(`{"listChanged":true}`), "prompts"))
	}
	if has("resources") {
		value := fmt.Sprintf(`{"listChanged":true,"subscribe":%t}`, never || slices.ContainsFunc(servers, subscribes))
		caps = rawjson.Apply(caps, rawjson.Put(json.RawMessage(value), "resources"))
	}
	for _, name := range []string{"completions", "logging"} {
		if has(name) {
			caps = rawjson.Apply(caps, rawjson.Put(json.RawMessage(`{}`), name))
		}
	}
	return caps
}
