package naming

import (
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// uriPrefix begins what names the server of a URI: "drawbridge+<server>".
const uriPrefix = "drawbridge+"

// URIs are what a URI may be listed by: as it is, or where another server has it, with its server in it. One that looks
// as if it named a server is never listed as it is, so that no server takes what is another's to have. Where names are
// bare, a URI stays as it is.
func URIs(style Style, server drawbridge.ServerID, uri string) []drawbridge.CardName {
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
