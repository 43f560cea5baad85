package deck

import (
	"encoding/json"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// uriPrefix begins what names the server of a URI: "drawbridge+<server>".
const uriPrefix = "drawbridge+"

// uris are what a URI may be listed by: as it is, or where another server has it, with its server in it. One that looks
// as if it named a server is never listed as it is, so that no server takes what is another's to have. Where names are
// bare, a URI stays as it is.
func (mk maker) uris(server drawbridge.ServerID, uri string) []drawbridge.CardName {
	plain, qualified := drawbridge.CardName(uri), drawbridge.CardName(qualifiedURI(server, uri))
	if mk.naming == Bare {
		return []drawbridge.CardName{plain}
	}
	if _, _, named := cutServer(uri); named {
		return []drawbridge.CardName{qualified}
	}
	return []drawbridge.CardName{plain, qualified}
}

// qualifiedURI is the URI with its server in it. The schemes of pages and skills say what a thing is and keep their place.
func qualifiedURI(server drawbridge.ServerID, uri string) string {
	if strings.HasPrefix(uri, "ui://") || strings.HasPrefix(uri, "skill://") {
		return inAuthority(server, uri)
	}
	return uriPrefix + string(server) + ":" + uri
}

// inAuthority is the URI with its server as the authority, and all that follows the scheme behind it:
// "<scheme>://drawbridge+<server>/<rest>". A URI without "//" gets the server in front.
func inAuthority(server drawbridge.ServerID, uri string) string {
	scheme, rest, ok := cutScheme(uri)
	if !ok {
		return uriPrefix + string(server) + ":" + uri
	}
	return scheme + "://" + uriPrefix + string(server) + "/" + rest
}

// cutServer takes a URI that names its server apart, in either form.
func cutServer(uri string) (server drawbridge.ServerID, own string, ok bool) {
	if rest, ok := strings.CutPrefix(uri, uriPrefix); ok {
		id, own, ok := strings.Cut(rest, ":")
		return drawbridge.ServerID(id), own, ok
	}
	scheme, rest, ok := cutScheme(uri)
	if !ok {
		return "", "", false
	}
	if rest, ok = strings.CutPrefix(rest, uriPrefix); !ok {
		return "", "", false
	}
	id, rest, ok := strings.Cut(rest, "/")
	return drawbridge.ServerID(id), scheme + "://" + rest, ok
}

// cutScheme takes a URI apart at "://".
func cutScheme(uri string) (scheme, rest string, ok bool) {
	scheme, rest, ok = strings.Cut(uri, "://")
	return scheme, rest, ok && scheme != "" && !strings.ContainsAny(scheme, ":/?#")
}

// alike is another URI of the same server in the form that a caller used: they asked for own and said said.
func alike(server drawbridge.ServerID, said, uri string) string {
	if strings.HasPrefix(said, uriPrefix) {
		return qualifiedURI(server, uri)
	}
	return inAuthority(server, uri)
}

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
