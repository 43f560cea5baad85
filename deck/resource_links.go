package deck

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// rewriteLinks gives the result of a tool or a prompt with the URIs of its server as callers know them, in the
// resources that it links to or holds: a caller who followed a link as the server wrote it would come to another
// server's resource. What is linked to need not be listed, so it is remembered who gave whom which link; a link that
// the principal has of another server gets its own server, as a listed resource would.
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

// mayHaveLinks says whether a result may link to resources that its server can be asked for. Nearly none does, and to
// see that is much cheaper than to read a large result.
func (v *view) mayHaveLinks(server drawbridge.ServerID, result json.RawMessage) bool {
	if !rawjson.MayContain(result, `"resource`) {
		return false
	}
	m := v.server(server)
	return m != nil && m.hasResources()
}

// rememberLink remembers a link of the server to a URI that nobody lists, and gives the URI that leads the caller
// there.
func (d *Deck) rememberLink(v *view, caller drawbridge.Caller, server drawbridge.ServerID, own string) string {
	if _, known := v.findKnownURI(caller, own); known || own == "" {
		return own
	}
	if owner := d.linkOwners.Remember(caller.Principal, server, own); owner == server || d.maker.naming == BareNames {
		return own
	}
	return naming.QualifiedURI(server, own)
}

// findLinkOwner finds the server that gave the caller's principal a link to the URI.
func (d *Deck) findLinkOwner(v *view, caller drawbridge.Caller, uri string) (callTarget, bool) {
	server, ok := d.linkOwners.Owner(caller.Principal, uri)
	m := v.server(server)
	if !ok || m == nil || !m.hasResources() || !v.mayKnowServer(caller, m) {
		return callTarget{}, false
	}
	return v.ifVisible(caller, m.unlistedResource(uri, uri))
}
