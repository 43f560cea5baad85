package deck

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// rewriteLinks returns the result of a tool or prompt with public URIs in its embedded and linked resources. With a
// server's own URI, the caller might read a resource of another server.
//
// Linked resources need not be listed, so the links are stored for each principal. If another server was the first to
// link a URI, the URI is qualified with the name of the present server, like a listed URI.
func (d *Deck) rewriteLinks(caller drawbridge.Caller, method string, server drawbridge.ServerID,
	result json.RawMessage) json.RawMessage {
	v := d.view.Load()
	renamed := v.renamedByServer()[server]
	links := v.mayHaveLinks(server, result)
	if !links && renamed == nil {
		return result
	}
	public := func(own string) string {
		if name, ok := renamed[own]; ok {
			return name
		}
		if links {
			return d.rememberLink(v, caller, server, own)
		}
		return own
	}
	return naming.RewriteLinks(method, result, public)
}

// mayHaveLinks reports whether a result may link to resources of its server. It only searches for a substring, which is
// much cheaper than parsing a large result.
func (v *view) mayHaveLinks(server drawbridge.ServerID, result json.RawMessage) bool {
	if !rawjson.MayContain(result, `"resource`) {
		return false
	}
	m := v.server(server)
	return m != nil && m.hasResources()
}

// rememberLink stores a server's link to an unlisted URI, and returns the public URI.
func (d *Deck) rememberLink(v *view, caller drawbridge.Caller, server drawbridge.ServerID, own string) string {
	if _, known := v.findKnownURI(caller, own); known || own == "" {
		return own
	}
	if owner := d.linkOwners.Remember(caller.Principal, server, own); owner == server || d.maker.naming == BareNames {
		return own
	}
	return naming.QualifiedURI(server, own)
}

// findLinkOwner returns the target for a URI that a server has sent to the caller's principal as a link.
func (d *Deck) findLinkOwner(v *view, caller drawbridge.Caller, uri string) (callTarget, bool) {
	server, ok := d.linkOwners.Owner(caller.Principal, uri)
	m := v.server(server)
	if !ok || m == nil || !m.hasResources() || !v.mayKnowServer(caller, m) {
		return callTarget{}, false
	}
	return v.ifVisible(caller, m.unlistedResource(uri, uri))
}
