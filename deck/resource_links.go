package deck

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// rewriteLinks returns the result of a call in which the server's own URIs of embedded and linked resources are
// replaced with public URIs. Without this, the caller might use the URI to read a resource of another server that has
// the same URI.
//
// A linked resource need not be listed. So the deck stores, for each principal, which server was the first to send a
// link to a URI. If another server later sends a link to the same URI, its URI is qualified with its name.
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

// mayHaveLinks reports whether a result of the server may contain links to resources. It returns false if the server
// has no resources. It only searches for a substring, which is much cheaper than parsing a large result, so it may
// return true for a result without links.
func (v *view) mayHaveLinks(server drawbridge.ServerID, result json.RawMessage) bool {
	if !rawjson.MayContain(result, `"resource`) {
		return false
	}
	m := v.server(server)
	return m != nil && m.hasResources()
}

// rememberLink stores that a server sent the caller's principal a link to the URI own, and returns the public URI. A
// URI that findKnownURI knows is not stored and is returned unchanged.
func (d *Deck) rememberLink(v *view, caller drawbridge.Caller, server drawbridge.ServerID, own string) string {
	if _, known := v.findKnownURI(caller, own); known || own == "" {
		return own
	}
	if owner := d.linkOwners.Remember(caller.Principal, server, own); owner == server || d.maker.naming == BareNames {
		return own
	}
	return naming.QualifiedURI(server, own)
}

// findLinkOwner returns the call target for a URI to which a server has sent the caller's principal a link. It returns
// false if the server does not exist, or if the server or the resource is hidden from the caller.
func (d *Deck) findLinkOwner(v *view, caller drawbridge.Caller, uri string) (callTarget, bool) {
	server, ok := d.linkOwners.Owner(caller.Principal, uri)
	m := v.server(server)
	if !ok || m == nil || !m.hasResources() || !v.mayKnowServer(caller, m) {
		return callTarget{}, false
	}
	return v.ifVisible(caller, m.unlistedResource(uri, uri))
}
