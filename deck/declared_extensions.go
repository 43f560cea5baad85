package deck

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// extensionSettings returns the settings of an extension in one declaration of capabilities; nil if they are not an
// object.
func extensionSettings(capabilities json.RawMessage, declaration, extension string) json.RawMessage {
	if s := rawjson.Get(capabilities, declaration, extension); len(s) > 0 && s[0] == '{' {
		return s
	}
	return nil
}

// extensionEdits returns the edits that put the servers' extensions into the deck's capabilities, for a caller with
// these capabilities. Servers are in configuration order.
//
// MCP Apps and skills are always declared: Apps needs no method of its own, and the deck answers the methods of skills.
// If several servers declare one, the first server's settings are used, byte for byte. Skills with readable directories
// take precedence, so that some server can answer "resources/directory/read".
//
// An extension that the deck does not know is declared only to a caller who declares it too, since nothing of it passes
// otherwise (see [Deck.Do]). It stays in the member in which its first server has it, with that server's settings.
// Unlisted servers contribute nothing. How Drawbridge signs in at servers is never declared.
func extensionEdits(caller json.RawMessage, servers []json.RawMessage) []rawjson.Edit {
	told := map[string]*declaredExtensions{}
	for _, declaration := range mcp.ExtensionMembers() {
		told[declaration] = &declaredExtensions{settings: map[string]json.RawMessage{}}
	}
	shared := mcp.UnknownExtensions(caller)
	for _, capabilities := range servers {
		for _, id := range []string{mcp.ExtensionApps, mcp.ExtensionSkills} {
			told[mcp.ExtensionMembers()[0]].add(id, extensionSettings(capabilities, mcp.ExtensionMembers()[0], id))
		}
		if len(shared) == 0 {
			continue
		}
		for _, declaration := range mcp.ExtensionMembers() {
			for e := range rawjson.Members(rawjson.Get(capabilities, declaration)) {
				if id, _ := rawjson.DecodeString(e.Name); shared[id] && e.Value[0] == '{' {
					told[declaration].add(id, e.Value)
				}
			}
		}
	}
	var edits []rawjson.Edit
	for _, declaration := range mcp.ExtensionMembers() {
		if object := told[declaration].encode(); object != nil {
			edits = append(edits, rawjson.Put(object, declaration))
		}
	}
	return edits
}

// declaredExtensions holds the extensions of one declaration in the order in which they were added.
type declaredExtensions struct {
	settings map[string]json.RawMessage
	order    []string
}

// add adds an extension with its settings; nil settings add nothing.
func (d *declaredExtensions) add(id string, settings json.RawMessage) {
	switch before := d.settings[id]; {
	case settings == nil:
	case before == nil:
		d.order = append(d.order, id)
		d.settings[id] = settings
	case id == mcp.ExtensionSkills && !supportsDirectoryRead(before) && supportsDirectoryRead(settings):
		d.settings[id] = settings
	}
}

// encode returns the declaration as JSON; nil if it is empty. It is one pass, since servers decide the number of
// extensions.
func (d *declaredExtensions) encode() json.RawMessage {
	if len(d.order) == 0 {
		return nil
	}
	out := []byte{'{'}
	for i, id := range d.order {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(rawjson.AppendQuoted(out, id), ':'), d.settings[id]...)
	}
	return append(out, '}')
}

// supportsDirectoryRead reports whether a server with these settings for skills answers "resources/directory/read".
func supportsDirectoryRead(settings json.RawMessage) bool {
	return string(rawjson.Get(settings, "directoryRead")) == "true"
}
