package deck

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// eachURI changes the member "uri" of every object in the array at member of the object: to what f gives for it. Where f
// changes none, the object is returned itself.
func eachURI(object json.RawMessage, member string, f func(uri string) string) json.RawMessage {
	return each(object, member, func(element json.RawMessage) json.RawMessage { return changeURI(element, f, "uri") })
}

// each changes the elements of the array at member of the object: to what f gives for them. Where f gives all of them as
// they are, the object is returned itself.
func each(object json.RawMessage, member string, f func(element json.RawMessage) json.RawMessage) json.RawMessage {
	var out []json.RawMessage
	changed := false
	for element := range wire.Elements(wire.Get(object, member)) {
		edited := f(element)
		changed = changed || !sameBytes(edited, element)
		out = append(out, edited)
	}
	if !changed {
		return object
	}
	return wire.Apply(object, wire.Put(array(out), member))
}

// changeURI changes the URI at path of the object to what f gives for it.
func changeURI(object json.RawMessage, f func(uri string) string, path ...string) json.RawMessage {
	uri, ok := wire.Text(wire.Get(object, path...))
	if !ok {
		return object
	}
	if public := f(uri); public != uri {
		return wire.Apply(object, wire.Put(wire.Quote(public), path...))
	}
	return object
}

// linked gives the result of a tool or a prompt with the URIs of its server as callers know them, in the resources that it
// links to or holds: a caller who followed a link as the server wrote it would come to another server's resource.
func (v *view) linked(method string, server drawbridge.ServerID, result json.RawMessage) json.RawMessage {
	renamed := v.renamed()[server]
	if renamed == nil {
		return result
	}
	public := func(own string) string {
		if name, ok := renamed[own]; ok {
			return name
		}
		return own
	}
	block := func(b json.RawMessage) json.RawMessage {
		switch wire.GetText(b, "type") {
		case "resource_link":
			return changeURI(b, public, "uri")
		case "resource":
			return changeURI(b, public, "resource", "uri")
		}
		return b
	}
	switch method {
	case wire.MethodToolsCall:
		return each(result, "content", block)
	case wire.MethodPromptsGet:
		return each(result, "messages", func(message json.RawMessage) json.RawMessage {
			content := wire.Get(message, "content")
			if edited := block(content); !sameBytes(edited, content) {
				return wire.Apply(message, wire.Put(edited, "content"))
			}
			return message
		})
	}
	return result
}

// renames gives, by server and own URI, the names of the resources that are not called by their own.
func (v *view) renames() map[drawbridge.ServerID]map[string]string {
	out := map[drawbridge.ServerID]map[string]string{}
	for _, items := range [][]*item{v.resources.items, v.resources.claimed} {
		for _, it := range items {
			if name := string(it.spec.Name); name != it.spec.Tool {
				if out[it.spec.Server] == nil {
					out[it.spec.Server] = map[string]string{}
				}
				out[it.spec.Server][it.spec.Tool] = name
			}
		}
	}
	return out
}

// array writes a JSON array.
func array(elements []json.RawMessage) json.RawMessage {
	out := []byte{'['}
	for i, element := range elements {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, element...)
	}
	return append(out, ']')
}
