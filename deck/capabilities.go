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

// The limits for the instructions that [Deck.Instructions] returns for models.
const (
	// maxInstructions is the maximum size of the joined instructions, in bytes. maxServerInstructions is the maximum
	// size of one server's instructions, in bytes.
	maxInstructions       = 16 << 10
	maxServerInstructions = 2 << 10
)

// An instructionsBuilder joins the instructions of several servers into one text. The zero value is empty.
type instructionsBuilder struct{ b strings.Builder }

// addServer appends a heading with the server's name, and the server's instructions. It truncates the instructions to
// maxServerInstructions, and the whole text to maxInstructions. It returns false if the text has reached
// maxInstructions, so that no more servers need to be added.
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

// addPreamble adds a text of the deck itself at the start. It must be called before addServer.
func (i *instructionsBuilder) addPreamble(text string) { i.b.WriteString(text) }

// String returns the joined instructions.
func (i *instructionsBuilder) String() string { return i.b.String() }

// serverCapabilities returns the union of the servers' capabilities as a ServerCapabilities object, without extensions
// and tasks. never reports whether a visible server was never listed. Such a server may have any capability, so the
// object then has all capabilities.
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
