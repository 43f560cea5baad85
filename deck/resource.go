package deck

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck/label"
	"github.com/drawbridge-mcp/drawbridge/deck/trail"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// findResource finds the server of a URI. Before it says that there is none it waits for servers that are about to
// appear.
func (d *Deck) findResource(ctx context.Context, caller drawbridge.Caller, uri string) (target, error) {
	t, ok := d.ownerOf(ctx, caller, uri)
	if !ok && d.beforeUnknown != nil {
		d.await(ctx, caller, "", func() bool { return d.view.Load().shows(caller, uri) })
		t, ok = d.ownerOf(ctx, caller, uri)
	}
	if !ok {
		t, ok = d.probeSkill(ctx, caller, uri)
	}
	if !ok {
		trail.Veil(ctx, d.view.Load().why(caller, resources, uri))
		return target{}, unknown("resource", uri)
	}
	return t, nil
}

// findReference finds the server of a completion's reference: a template as it is listed, or any URI.
func (d *Deck) findReference(ctx context.Context, caller drawbridge.Caller, uri string) (target, error) {
	if t, ok := d.view.Load().templates.exact(caller, uri); ok {
		return t, nil
	}
	return d.findResource(ctx, caller, uri)
}

// ownerOf finds the owner of a URI: the server that the deck knows it from, that has the skill in which it lies, whose it
// may be, or that gave the caller's principal a link to it.
func (d *Deck) ownerOf(ctx context.Context, caller drawbridge.Caller, uri string) (target, bool) {
	v := d.view.Load()
	if t, ok := v.named(caller, uri); ok {
		return t, true
	}
	if t, ok := d.skillOwner(ctx, v, caller, uri); ok {
		return t, true
	}
	if t, ok := v.matching(caller, uri); ok {
		return t, true
	}
	return d.linkedTo(v, caller, uri)
}

// shows says whether a URI is listed, or looks like what a server says its URIs look like.
func (v *view) shows(caller drawbridge.Caller, uri string) bool {
	_, named := v.named(caller, uri)
	return named || v.templates.closest(caller, uri) != nil
}

// named finds the owner of a URI that the deck knows: the server that lists it, or the one it names.
func (v *view) named(caller drawbridge.Caller, uri string) (target, bool) {
	if t, ok := v.resources.exact(caller, uri); ok {
		return t, true
	}
	if server, own, ok := label.CutServer(uri); ok {
		if m := v.byID[server]; m != nil && m.hasResources() && v.knows(caller, m) {
			return v.shown(caller, m.unlisted(uri, own))
		}
	}
	return target{}, false
}

// matching finds the owner of any other URI: the server with the template that it matches most closely; or, where only
// one server has resources, that one, since servers need not list all of them.
func (v *view) matching(caller drawbridge.Caller, uri string) (target, bool) {
	if it := v.templates.closest(caller, uri); it != nil {
		return matched(it, uri), true
	}
	var only *member
	for _, m := range v.members {
		if !m.hasResources() || !v.knows(caller, m) {
			continue
		}
		if only != nil {
			return target{}, false
		}
		only = m
	}
	if only == nil {
		return target{}, false
	}
	return v.shown(caller, only.unlisted(uri, uri))
}

// shown gives a target that no list has, unless it is hidden from the caller.
func (v *view) shown(caller drawbridge.Caller, t target) (target, bool) {
	if v.hides(caller, t) {
		return target{}, false
	}
	return t, true
}

func (v *view) hides(caller drawbridge.Caller, t target) bool {
	return v.gate.Hides(caller, t.kind, t.spec)
}

// exact gives the item that is listed by this URI.
func (s *shelf) exact(caller drawbridge.Caller, uri string) (target, bool) {
	it := s.byName[uri]
	if it == nil || !s.shows(caller, it) {
		s.stall(caller, uri, 1, []*item{it})
		return target{}, false
	}
	return it.target(), true
}

// closest gives the template with the most literal characters of those that match; of equals the first.
func (s *shelf) closest(caller drawbridge.Caller, uri string) *item {
	var best *item
	var judged []*item
	var effort label.Effort
	for _, it := range s.items {
		closer := best == nil && it.template != nil || best != nil && it.template.Closer(best.template)
		if !closer || !caller.Holds(it.spec.Scopes) || !effort.Match(it.spec.Server, it.template, uri) {
			continue
		}
		if s.gate.Hides(caller, resources.word, matched(it, uri).spec) {
			judged = append(judged, it)
			continue
		}
		best = it
	}
	if best == nil {
		s.stall(caller, uri, 1, judged)
	}
	return best
}

// matched is the target for a URI that matches a template. Whether the template itself is hidden does not matter.
func matched(it *item, uri string) target {
	t := target{spec: it.spec, kind: resources.word, own: uri}
	t.spec.Name, t.spec.Tool = drawbridge.CardName(uri), uri
	return t
}

// unlisted is the target for a URI of the member that it does not list.
func (m *member) unlisted(uri, own string) target {
	return target{
		spec: drawbridge.Spec{Name: drawbridge.CardName(uri), Server: m.ID, Tool: own, Scopes: m.scopes},
		kind: resources.word,
		own:  own,
	}
}

// hasResources says whether the server has resources at all, listed or not.
func (m *member) hasResources() bool {
	return m.listing != nil &&
		(m.skills || len(m.resources) > 0 || len(m.templates) > 0 || wire.Get(m.listing.Capabilities, "resources") != nil)
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
