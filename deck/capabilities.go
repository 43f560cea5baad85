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
	maxInstructions       = 16 << 10
	maxServerInstructions = 2 << 10
)

// instructionsBuilder are what is said about the use of a deck. Its zero value says nothing.
type instructionsBuilder struct{ b strings.Builder }

// addServer adds what a server says: under its name, cut to 2 KiB. All of it is cut to 16 KiB. It reports
// false where there is no room for more.
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

// addPreamble adds what the deck says itself, before any server.
func (i *instructionsBuilder) addPreamble(text string) { i.b.WriteString(text) }

// String gives all that was said; empty where nothing was.
func (i *instructionsBuilder) String() string { return i.b.String() }

// serverCapabilities are the ServerCapabilities object of a deck, without extensions and tasks, for who may know of
// servers with those. With one that was never listed, which may offer anything, all is promised.
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
