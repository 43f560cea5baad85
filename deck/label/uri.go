package label

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// uriPrefix begins what names the server of a URI: "drawbridge+<server>".
const uriPrefix = "drawbridge+"

// URIs are what a URI may be listed by: as it is, or where another server has it, with its server in it. One that looks
// as if it named a server is never listed as it is, so that no server takes what is another's to have. Where names are
// bare, a URI stays as it is.
func URIs(style Naming, server drawbridge.ServerID, uri string) []drawbridge.CardName {
	plain, qualified := drawbridge.CardName(uri), drawbridge.CardName(QualifiedURI(server, uri))
	if style == Bare {
		return []drawbridge.CardName{plain}
	}
	if _, _, named := CutServer(uri); named {
		return []drawbridge.CardName{qualified}
	}
	return []drawbridge.CardName{plain, qualified}
}

// QualifiedURI is the URI with its server in it. The schemes of pages and skills say what a thing is and keep their place.
func QualifiedURI(server drawbridge.ServerID, uri string) string {
	if strings.HasPrefix(uri, "ui://") || strings.HasPrefix(uri, "skill://") {
		return InAuthority(server, uri)
	}
	return uriPrefix + string(server) + ":" + uri
}

// InAuthority is the URI with its server as the authority, and all that follows the scheme behind it:
// "<scheme>://drawbridge+<server>/<rest>". A URI without "//" gets the server in front.
func InAuthority(server drawbridge.ServerID, uri string) string {
	scheme, rest, ok := CutScheme(uri)
	if !ok {
		return uriPrefix + string(server) + ":" + uri
	}
	return scheme + "://" + uriPrefix + string(server) + "/" + rest
}

// CutServer takes a URI that names its server apart, in either form.
func CutServer(uri string) (server drawbridge.ServerID, own string, ok bool) {
	if rest, ok := strings.CutPrefix(uri, uriPrefix); ok {
		id, own, ok := strings.Cut(rest, ":")
		return drawbridge.ServerID(id), own, ok
	}
	scheme, rest, ok := CutScheme(uri)
	if !ok {
		return "", "", false
	}
	if rest, ok = strings.CutPrefix(rest, uriPrefix); !ok {
		return "", "", false
	}
	id, rest, ok := strings.Cut(rest, "/")
	return drawbridge.ServerID(id), scheme + "://" + rest, ok
}

// CutScheme takes a URI apart at "://".
func CutScheme(uri string) (scheme, rest string, ok bool) {
	scheme, rest, ok = strings.Cut(uri, "://")
	return scheme, rest, ok && scheme != "" && !strings.ContainsAny(scheme, ":/?#")
}

// Alike is another URI of the same server in the form that a caller used: they asked for own and said said.
func Alike(server drawbridge.ServerID, said, uri string) string {
	if strings.HasPrefix(said, uriPrefix) {
		return QualifiedURI(server, uri)
	}
	return InAuthority(server, uri)
}

// EachURI changes the member "uri" of every object in the array at member of the object: to what f gives for it. Where f
// changes none, the object is returned itself.
func EachURI(object json.RawMessage, member string, f func(uri string) string) json.RawMessage {
	return Each(object, member, func(element json.RawMessage) json.RawMessage { return ChangeURI(element, f, "uri") })
}

// Each changes the elements of the array at member of the object: to what f gives for them. Where f gives all of them as
// they are, the object is returned itself.
func Each(object json.RawMessage, member string, f func(element json.RawMessage) json.RawMessage) json.RawMessage {
	return within(object, member, func(array json.RawMessage) json.RawMessage { return wire.EachElement(array, f) })
}

// within changes the value of a member of the object: to what f gives for it. Where that is the same, the object is returned itself.
func within(object json.RawMessage, member string, f func(value json.RawMessage) json.RawMessage) json.RawMessage {
	value := wire.Get(object, member)
	if edited := f(value); !bytes.Equal(edited, value) {
		return wire.Apply(object, wire.Put(edited, member))
	}
	return object
}

// ChangeURI changes the URI at path of the object to what f gives for it. Where that is the same, or there is no text, the
// object is returned itself.
func ChangeURI(object json.RawMessage, f func(uri string) string, path ...string) json.RawMessage {
	uri, ok := wire.Text(wire.Get(object, path...))
	if !ok {
		return object
	}
	if public := f(uri); public != uri {
		return wire.Apply(object, wire.Put(wire.Quote(public), path...))
	}
	return object
}
