package deck

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// findResource returns the target for a URI. If the URI is unknown, it waits for servers that are about to appear, and
// then looks again.
func (d *Deck) findResource(ctx context.Context, log *audit.LoggedCall, caller drawbridge.Caller,
	uri string) (callTarget, error) {
	t, ok := d.findURIOwner(ctx, caller, uri)
	if !ok && d.beforeUnknown != nil {
		d.waitForName(ctx, caller, "", func() bool { return d.view.Load().knowsURI(caller, uri) })
		t, ok = d.findURIOwner(ctx, caller, uri)
	}
	if !ok {
		t, ok = d.probeSkill(ctx, caller, uri)
	}
	if !ok {
		log.NoteHidden(d.view.Load().hiddenReason(caller, resources, uri))
		return callTarget{}, unknownNameFault("resource", uri)
	}
	return t, nil
}

// findCompletionRef returns the target for a completion's reference, which is a listed template or any URI.
func (d *Deck) findCompletionRef(ctx context.Context, log *audit.LoggedCall, caller drawbridge.Caller,
	uri string) (callTarget, error) {
	if t, ok := d.view.Load().templates.findURI(caller, uri); ok {
		return t, nil
	}
	return d.findResource(ctx, log, caller, uri)
}

// findURIOwner finds the server that owns a URI. The owner lists the URI, has a skill with the URI, or has a matching
// template. Otherwise the owner is the server that sent the caller's principal a link to the URI.
func (d *Deck) findURIOwner(ctx context.Context, caller drawbridge.Caller, uri string) (callTarget, bool) {
	v := d.view.Load()
	if t, ok := v.findKnownURI(caller, uri); ok {
		return t, true
	}
	if t, ok := d.findSkillOwner(ctx, v, caller, uri); ok {
		return t, true
	}
	if t, ok := v.matchURI(caller, uri); ok {
		return t, true
	}
	return d.findLinkOwner(v, caller, uri)
}

// knowsURI reports whether a URI is listed, contains the name of a server, or matches a server's template.
func (v *view) knowsURI(caller drawbridge.Caller, uri string) bool {
	_, named := v.findKnownURI(caller, uri)
	return named || v.templates.closestTemplate(caller, uri) != nil
}

// findKnownURI finds the owner of a URI that is listed or that contains the name of a server.
func (v *view) findKnownURI(caller drawbridge.Caller, uri string) (callTarget, bool) {
	if t, ok := v.resources.findURI(caller, uri); ok {
		return t, true
	}
	if server, own, ok := naming.CutServer(uri); ok {
		if m := v.byID[server]; m != nil && m.hasResources() && v.mayKnowServer(caller, m) {
			return v.ifVisible(caller, m.unlistedResource(uri, own))
		}
	}
	return callTarget{}, false
}

// matchURI finds the owner of any other URI. It is the server with the closest matching template. If no template
// matches and only one visible server has resources, this server is the owner, because servers need not list all
// resources.
func (v *view) matchURI(caller drawbridge.Caller, uri string) (callTarget, bool) {
	if it := v.templates.closestTemplate(caller, uri); it != nil {
		return templateTarget(it, uri), true
	}
	var only *serverState
	for _, m := range v.servers {
		if !m.hasResources() || !v.mayKnowServer(caller, m) {
			continue
		}
		if only != nil {
			return callTarget{}, false
		}
		only = m
	}
	if only == nil {
		return callTarget{}, false
	}
	return v.ifVisible(caller, only.unlistedResource(uri, uri))
}

// ifVisible returns t and true, unless t is hidden from the caller.
func (v *view) ifVisible(caller drawbridge.Caller, t callTarget) (callTarget, bool) {
	if v.hidesTarget(caller, t) {
		return callTarget{}, false
	}
	return t, true
}

func (v *view) hidesTarget(caller drawbridge.Caller, t callTarget) bool {
	return v.guards.hides(caller, t.kind, t.spec)
}

// findURI returns the target for the item that is listed under this URI.
func (s *itemIndex) findURI(caller drawbridge.Caller, uri string) (callTarget, bool) {
	it := s.byName[uri]
	if it == nil || !s.visibleTo(caller, it) {
		s.equalizeTiming(caller, uri, 1, []*item{it})
		return callTarget{}, false
	}
	return it.asTarget(), true
}

// closestTemplate returns the visible template that matches the URI and has the most literal characters. If several
// have the same number, it returns the first.
func (s *itemIndex) closestTemplate(caller drawbridge.Caller, uri string) *item {
	var best *item
	var judged []*item
	var effort naming.MatchBudget
	for _, it := range s.items {
		closer := best == nil && it.template != nil || best != nil && it.template.MoreSpecificThan(best.template)
		if !closer || !caller.HasScopes(it.spec.Scopes) || !effort.Matches(it.spec.Server, it.template, uri) {
			continue
		}
		if s.guards.hides(caller, resources.word, templateTarget(it, uri).spec) {
			judged = append(judged, it)
			continue
		}
		best = it
	}
	if best == nil {
		s.equalizeTiming(caller, uri, 1, judged)
	}
	return best
}

// templateTarget returns the target for a URI that matches a template. The guards decide on it as a resource, even if
// the template itself is hidden.
func templateTarget(it *item, uri string) callTarget {
	t := callTarget{spec: it.spec, kind: resources.word, ownName: uri}
	t.spec.Name, t.spec.Tool = drawbridge.CardName(uri), uri
	return t
}

// unlistedResource returns the target for a URI that the server does not list.
func (m *serverState) unlistedResource(uri, own string) callTarget {
	return callTarget{
		spec:    drawbridge.Spec{Name: drawbridge.CardName(uri), Server: m.ID, Tool: own, Scopes: m.scopes},
		kind:    resources.word,
		ownName: own,
	}
}

// hasResources reports whether the server has resources, including resources that it does not list.
func (m *serverState) hasResources() bool {
	return m.listing != nil &&
		(m.skills || len(m.resources) > 0 || len(m.templates) > 0 || rawjson.Get(m.listing.Capabilities,
			"resources") != nil)
}

// renamedURIs returns the public URIs that differ from the server's own URIs. The keys are the server and its own URI.
func (v *view) renamedURIs() map[drawbridge.ServerID]map[string]string {
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
