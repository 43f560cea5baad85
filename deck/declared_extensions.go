package deck

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// extensionSettings returns the settings of an extension in capabilities, or nil if they are not a JSON object.
// declaration is the name of the member of capabilities that contains the extensions; see mcp.ExtensionMembers.
func extensionSettings(capabilities json.RawMessage, declaration, extension string) json.RawMessage {
	if s := rawjson.Get(capabilities, declaration, extension); len(s) > 0 && s[0] == '{' {
		return s
	}
	return nil
}

// extensionEdits returns the edits that add the servers' extensions to the capabilities that the deck declares to a
// caller. caller is the capabilities object of the caller. servers are the capabilities objects of the servers, in
// configuration order.
//
// The extensions MCP Apps and skills are declared if a server declares them. Apps has no methods, and the deck handles
// the methods of skills. If several servers declare an extension, the first server's settings are used unchanged. For
// skills, the settings of the first server with "directoryRead" take precedence. Then at least one server can answer
// "resources/directory/read".
//
// An extension that the deck does not know is declared only if the caller declares it too, because otherwise [Deck.Do]
// refuses its methods. It is declared in the same member and with the same settings as by the first server that
// declares it. A server without a listing adds no extensions. Extensions for a client's sign-in at servers are never
// declared, because Drawbridge itself signs in.
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

// declaredExtensions contains the extensions to declare in one member of capabilities, in the order in which they were
// added.
type declaredExtensions struct {
	settings map[string]json.RawMessage
	order    []string
}

// add adds an extension with its settings. It does nothing if settings is nil. If the extension was added before, its
// settings are replaced only for skills, and only if the new settings add "directoryRead".
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

// encode returns the extensions as a JSON object; nil if there are none. It does not edit the object once for each
// extension, because a server can declare any number of extensions.
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

// supportsDirectoryRead reports whether a server with these settings of skills answers "resources/directory/read".
func supportsDirectoryRead(settings json.RawMessage) bool {
	return string(rawjson.Get(settings, "directoryRead")) == "true"
}
