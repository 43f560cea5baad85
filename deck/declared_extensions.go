package deck

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// extensionSettings gives what capabilities say of an extension in one of the declarations; nil where it is no object.
func extensionSettings(capabilities json.RawMessage, declaration, extension string) json.RawMessage {
	if s := rawjson.Get(capabilities, declaration, extension); len(s) > 0 && s[0] == '{' {
		return s
	}
	return nil
}

// extensionEdits gives the edits that put into the deck's capabilities what servers have of extensions: for a caller
// with these capabilities, who may know of servers with those, in configuration order.
//
// MCP Apps and skills are always told: the first needs no method of its own, and of the second we answer the methods.
// Where several servers declare one, the settings are those of the first in configuration order, byte for byte, but
// that skills whose directories can be read go before others: then "resources/directory/read" has somebody to go to. An
// extension that we know nothing of is told only to a caller who declares it too, since nothing of it passes otherwise
// (see the deck's Do), in the member in which its server has it, with the settings of the first server that has it. Of
// what was never listed nothing is promised. How we sign in at servers is told to nobody.
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

// declaredExtensions is what is told of extensions in one declaration, in the order in which they were noted.
type declaredExtensions struct {
	settings map[string]json.RawMessage
	order    []string
}

// add takes an extension with its settings; nil are none.
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

// encode writes the declaration, in one pass: how many extensions there are is for others to say. It is nil for none.
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

// supportsDirectoryRead says whether a server with these settings for skills answers "resources/directory/read".
func supportsDirectoryRead(settings json.RawMessage) bool {
	return string(rawjson.Get(settings, "directoryRead")) == "true"
}
