// Package declare says what a deck tells of itself: which capabilities its servers have together, which of their extensions can
// pass, and what they say about their use.
package declare

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// Settings gives what capabilities say of an extension in one of the declarations; nil where it is no object.
func Settings(capabilities json.RawMessage, declaration, extension string) json.RawMessage {
	if s := wire.Get(capabilities, declaration, extension); len(s) > 0 && s[0] == '{' {
		return s
	}
	return nil
}

// Extensions gives the edits that put into the deck's capabilities what servers have of extensions: for a caller with these
// capabilities, who may know of servers with those, in configuration order.
//
// MCP Apps and skills are always told: the first needs no method of its own, and of the second we answer the methods.
// Where several servers declare one, the settings are those of the first in configuration order, byte for byte, but that
// skills whose directories can be read go before others: then "resources/directory/read" has somebody to go to. An
// extension that we know nothing of is told only to a caller who declares it too, since nothing of it passes otherwise
// (see the deck's Do), in the member in which its server has it, with the settings of the first server that has it. Of what
// was never listed nothing is promised. How we sign in at servers is told to nobody.
func Extensions(caller json.RawMessage, servers []json.RawMessage) []wire.Edit {
	told := map[string]*declared{}
	for _, declaration := range wire.Declarations() {
		told[declaration] = &declared{settings: map[string]json.RawMessage{}}
	}
	shared := wire.Foreign(caller)
	for _, capabilities := range servers {
		for _, id := range []string{wire.ExtensionApps, wire.ExtensionSkills} {
			told[wire.Declarations()[0]].note(id, Settings(capabilities, wire.Declarations()[0], id))
		}
		if len(shared) == 0 {
			continue
		}
		for _, declaration := range wire.Declarations() {
			for e := range wire.Members(wire.Get(capabilities, declaration)) {
				if id, _ := wire.Text(e.Name); shared[id] && e.Value[0] == '{' {
					told[declaration].note(id, e.Value)
				}
			}
		}
	}
	var edits []wire.Edit
	for _, declaration := range wire.Declarations() {
		if object := told[declaration].object(); object != nil {
			edits = append(edits, wire.Put(object, declaration))
		}
	}
	return edits
}

// declared is what is told of extensions in one declaration, in the order in which they were noted.
type declared struct {
	settings map[string]json.RawMessage
	order    []string
}

// note takes an extension with its settings; nil are none.
func (d *declared) note(id string, settings json.RawMessage) {
	switch before := d.settings[id]; {
	case settings == nil:
	case before == nil:
		d.order = append(d.order, id)
		d.settings[id] = settings
	case id == wire.ExtensionSkills && !ReadsDirectories(before) && ReadsDirectories(settings):
		d.settings[id] = settings
	}
}

// object writes the declaration, in one pass: how many extensions there are is for others to say. It is nil for none.
func (d *declared) object() json.RawMessage {
	if len(d.order) == 0 {
		return nil
	}
	out := []byte{'{'}
	for i, id := range d.order {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(wire.AppendQuoted(out, id), ':'), d.settings[id]...)
	}
	return append(out, '}')
}

// ReadsDirectories says whether a server with these settings for skills answers "resources/directory/read".
func ReadsDirectories(settings json.RawMessage) bool {
	return string(wire.Get(settings, "directoryRead")) == "true"
}
