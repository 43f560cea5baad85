package naming

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// uriPrefix begins what names the server of a URI: "drawbridge+<server>".
const uriPrefix = "drawbridge+"

// ResourceURIs are what a URI may be listed by: as it is, or where another server has it, with its server in it. One
// that looks as if it named a server is never listed as it is, so that no server takes what is another's to have.
// Where names are bare, a URI stays as it is.
func ResourceURIs(style Style, server drawbridge.ServerID, uri string) []drawbridge.CardName {
	plain, qualified := drawbridge.CardName(uri), drawbridge.CardName(QualifiedURI(server, uri))
	if style == Bare {
		return []drawbridge.CardName{plain}
	}
	if _, _, named := CutServer(uri); named {
		return []drawbridge.CardName{qualified}
	}
	return []drawbridge.CardName{plain, qualified}
}

// QualifiedURI is the URI with its server in it. The schemes of pages and skills say what a thing is and keep their
// place.
func QualifiedURI(server drawbridge.ServerID, uri string) string {
	if strings.HasPrefix(uri, "ui://") || strings.HasPrefix(uri, "skill://") {
		return AddServerAuthority(server, uri)
	}
	return uriPrefix + string(server) + ":" + uri
}

// AddServerAuthority is the URI with its server as the authority, and all that follows the scheme behind it:
// "<scheme>://drawbridge+<server>/<rest>". A URI without "//" gets the server in front.
func AddServerAuthority(server drawbridge.ServerID, uri string) string {
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

// QualifyLike is another URI of the same server in the form that a caller used: they asked for own and said said.
func QualifyLike(server drawbridge.ServerID, said, uri string) string {
	if strings.HasPrefix(said, uriPrefix) {
		return QualifiedURI(server, uri)
	}
	return AddServerAuthority(server, uri)
}

// MapURIs changes the member "uri" of every object in the array at member of the object: to what f gives for it. Where
// f changes none, the object is returned itself.
func MapURIs(object json.RawMessage, member string, f func(uri string) string) json.RawMessage {
	return MapElements(object, member,
		func(element json.RawMessage) json.RawMessage { return MapURI(element, f, "uri") })
}

// MapElements changes the elements of the array at member of the object: to what f gives for them. Where f gives all
// of them as they are, the object is returned itself.
func MapElements(object json.RawMessage, member string,
	f func(element json.RawMessage) json.RawMessage) json.RawMessage {
	return mapMember(object, member,
		func(array json.RawMessage) json.RawMessage { return rawjson.MapElements(array, f) })
}

// mapMember changes the value of a member of the object: to what f gives for it. Where that is the same, the object is
// returned itself.
func mapMember(object json.RawMessage, member string, f func(value json.RawMessage) json.RawMessage) json.RawMessage {
	value := rawjson.Get(object, member)
	if edited := f(value); !bytes.Equal(edited, value) {
		return rawjson.Apply(object, rawjson.Put(edited, member))
	}
	return object
}

// MapURI changes the URI at path of the object to what f gives for it. Where that is the same, or there is no text, the
// object is returned itself.
func MapURI(object json.RawMessage, f func(uri string) string, path ...string) json.RawMessage {
	uri, ok := rawjson.DecodeString(rawjson.Get(object, path...))
	if !ok {
		return object
	}
	if public := f(uri); public != uri {
		return rawjson.Apply(object, rawjson.Put(rawjson.Quote(public), path...))
	}
	return object
}
