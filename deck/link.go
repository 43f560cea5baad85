package deck

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck/label"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// linked gives the result of a tool or a prompt with the URIs of its server as callers know them, in the resources that it
// links to or holds: a caller who followed a link as the server wrote it would come to another server's resource. What is
// linked to need not be listed, so it is remembered who gave whom which link; a link that the principal has of another
// server gets its own server, as a listed resource would.
func (d *Deck) linked(caller drawbridge.Caller, method string, server drawbridge.ServerID, result json.RawMessage) json.RawMessage {
	v := d.view.Load()
	renamed := v.renamed()[server]
	links := v.links(server, result)
	if !links && renamed == nil {
		return result
	}
	public := func(own string) string {
		if name, ok := renamed[own]; ok {
			return name
		}
		if links {
			return d.given(v, caller, server, own)
		}
		return own
	}
	return label.Linked(method, result, public)
}

// links says whether a result may link to resources that its server can be asked for. Nearly none does, and to see that
// is much cheaper than to read a large result.
func (v *view) links(server drawbridge.ServerID, result json.RawMessage) bool {
	if !wire.MayHave(result, `"resource`) {
		return false
	}
	m := v.member(server)
	return m != nil && m.hasResources()
}

// given remembers a link of the server to a URI that nobody lists, and gives the URI that leads the caller there.
func (d *Deck) given(v *view, caller drawbridge.Caller, server drawbridge.ServerID, own string) string {
	if _, known := v.named(caller, own); known || own == "" {
		return own
	}
	if owner := d.links.Give(caller.Principal, server, own); owner == server || d.maker.naming == Bare {
		return own
	}
	return label.QualifiedURI(server, own)
}

// linkedTo finds the server that gave the caller's principal a link to the URI.
func (d *Deck) linkedTo(v *view, caller drawbridge.Caller, uri string) (target, bool) {
	server, ok := d.links.Owner(caller.Principal, uri)
	m := v.member(server)
	if !ok || m == nil || !m.hasResources() || !v.knows(caller, m) {
		return target{}, false
	}
	return v.shown(caller, m.unlisted(uri, uri))
}
