package naming

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// uriPrefix is the text directly before the server's name in a qualified URI.
const uriPrefix = "drawbridge+"

// ResourceURIs returns the possible public URIs of a resource, the preferred one first: the server's own URI, and the
// URI qualified with the server. If the server's own URI looks qualified, only the qualified URI is possible, so that
// no server can take another server's URI. In the style Bare, only the server's own URI is possible.
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

// QualifiedURI returns the URI qualified with the server's name: "drawbridge+<server>:<uri>". A URI with the scheme ui
// or skill is qualified by AddServerAuthority instead. Hosts recognize the kind of a resource by these schemes, so they
// must remain at the start.
func QualifiedURI(server drawbridge.ServerID, uri string) string {
	if strings.HasPrefix(uri, "ui://") || strings.HasPrefix(uri, "skill://") {
		return AddServerAuthority(server, uri)
	}
	return uriPrefix + string(server) + ":" + uri
}

// AddServerAuthority returns the URI with the server as its authority: "<scheme>://drawbridge+<server>/<rest>". rest is
// everything after "<scheme>://". A URI without a scheme and "//" becomes "drawbridge+<server>:<uri>".
func AddServerAuthority(server drawbridge.ServerID, uri string) string {
	scheme, rest, ok := CutScheme(uri)
	if !ok {
		return uriPrefix + string(server) + ":" + uri
	}
	return scheme + "://" + uriPrefix + string(server) + "/" + rest
}

// CutServer splits a qualified URI into the server and the server's own URI. The URI may have the form of QualifiedURI
// or of AddServerAuthority; for another URI, ok is false.
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

// CutScheme splits a URI at "://". ok is false if the URI has no valid scheme.
func CutScheme(uri string) (scheme, rest string, ok bool) {
	scheme, rest, ok = strings.Cut(uri, "://")
	return scheme, rest, ok && scheme != "" && !strings.ContainsAny(scheme, ":/?#")
}

// QualifyLike returns uri qualified with the server's name, in the same form as the qualified URI said. The form is
// that of QualifiedURI or of AddServerAuthority.
func QualifyLike(server drawbridge.ServerID, said, uri string) string {
	if strings.HasPrefix(said, uriPrefix) {
		return QualifiedURI(server, uri)
	}
	return AddServerAuthority(server, uri)
}

// MapURIs returns the object with the member "uri" of each element of an array replaced by the result of f. member is
// the name of the array in the object. If nothing changes, MapURIs returns the same bytes.
func MapURIs(object json.RawMessage, member string, f func(uri string) string) json.RawMessage {
	return MapElements(object, member,
		func(element json.RawMessage) json.RawMessage { return MapURI(element, f, "uri") })
}

// MapElements returns the object with each element of an array replaced by the result of f. member is the name of the
// array in the object. If nothing changes, MapElements returns the same bytes.
func MapElements(object json.RawMessage, member string,
	f func(element json.RawMessage) json.RawMessage) json.RawMessage {
	return mapMember(object, member,
		func(array json.RawMessage) json.RawMessage { return rawjson.MapElements(array, f) })
}

// mapMember returns the object with the value of a member replaced by the result of f. If nothing changes, it returns
// the same bytes.
func mapMember(object json.RawMessage, member string, f func(value json.RawMessage) json.RawMessage) json.RawMessage {
	value := rawjson.Get(object, member)
	if edited := f(value); !bytes.Equal(edited, value) {
		return rawjson.Apply(object, rawjson.Put(edited, member))
	}
	return object
}

// MapURI returns the object with the URI at path replaced by the result of f. If nothing changes, or if there is no
// string at path, it returns the same bytes.
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
