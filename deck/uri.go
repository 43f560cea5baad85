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
	var out []json.RawMessage
	changed := false
	for element := range wire.Elements(wire.Get(object, member)) {
		if uri, ok := wire.Text(wire.Get(element, "uri")); ok {
			if public := f(uri); public != uri {
				element, changed = wire.Apply(element, wire.Put(wire.Quote(public), "uri")), true
			}
		}
		out = append(out, element)
	}
	if !changed {
		return object
	}
	return wire.Apply(object, wire.Put(array(out), member))
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
