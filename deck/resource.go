package deck

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// findResource returns the call target for a URI. If no server owns the URI, it waits for servers that are starting,
// and searches again. If it still finds no owner, it asks the servers for a skill with this URI. Otherwise it returns
// the fault for an unknown resource.
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

// findCompletionRef returns the call target for the reference of a completion, which is the text of a listed template
// or any URI.
func (d *Deck) findCompletionRef(ctx context.Context, log *audit.LoggedCall, caller drawbridge.Caller,
	uri string) (callTarget, error) {
	if t, ok := d.view.Load().templates.findURI(caller, uri); ok {
		return t, nil
	}
	return d.findResource(ctx, log, caller, uri)
}

// findURIOwner returns the call target for a URI at the server that owns the URI. It searches for the owner in this
// order: a server that lists the URI or whose name the URI contains; the owner of a skill that contains the URI; the
// server that matchURI finds; the server that sent the caller's principal a link to the URI.
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

// knowsURI reports whether a URI is listed, contains the name of a server, or matches a template of a server. Only
// items that are visible to the caller count.
func (v *view) knowsURI(caller drawbridge.Caller, uri string) bool {
	_, named := v.findKnownURI(caller, uri)
	return named || v.templates.closestTemplate(caller, uri) != nil
}

// findKnownURI returns the call target for a URI that is listed, or that is qualified with the name of a server. It
// returns false for any other URI, and for a resource that is hidden from the caller.
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

// matchURI returns the call target for a URI that findKnownURI does not know. The owner is the server with the closest
// matching template. If no template matches, and exactly one visible server has resources, that server is the owner,
// because a server need not list all its resources.
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

// ifVisible returns t and true, or false if guards hide t from the caller.
func (v *view) ifVisible(caller drawbridge.Caller, t callTarget) (callTarget, bool) {
	if v.hidesTarget(caller, t) {
		return callTarget{}, false
	}
	return t, true
}

func (v *view) hidesTarget(caller drawbridge.Caller, t callTarget) bool {
	return v.guards.hides(caller, t.kind, t.spec)
}

// findURI returns the call target for the item that is listed under this URI; false if there is none or it is hidden
// from the caller.
func (s *itemIndex) findURI(caller drawbridge.Caller, uri string) (callTarget, bool) {
	it := s.byName[uri]
	if it == nil || !s.visibleTo(caller, it) {
		s.equalizeTiming(caller, uri, 1, []*item{it})
		return callTarget{}, false
	}
	return it.asTarget(), true
}

// closestTemplate returns the template that matches the URI and has the most literal characters, or nil. Among equal
// templates it returns the first. It ignores a template if guards hide a resource with this URI from the caller.
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

// templateTarget returns the call target for a URI that matches the template it. The guards decide on the URI as on a
// resource. It does not matter whether they hide the template.
func templateTarget(it *item, uri string) callTarget {
	t := callTarget{spec: it.spec, kind: resources.word, ownName: uri, card: it.card}
	t.spec.Name, t.spec.Tool = drawbridge.CardName(uri), uri
	return t
}

// unlistedResource returns the call target for a resource that the server does not list. uri is the caller's URI, and
// own is the server's own URI.
func (m *serverState) unlistedResource(uri, own string) callTarget {
	return callTarget{
		spec:    drawbridge.Spec{Name: drawbridge.CardName(uri), Server: m.ID, Tool: own, Scopes: m.scopes},
		kind:    resources.word,
		ownName: own,
	}
}

// hasResources reports whether the server may have resources, including resources that it does not list. That is so if
// it lists resources or templates, or declares the capability for resources or skills.
func (m *serverState) hasResources() bool {
	return m.listing != nil &&
		(m.skills || len(m.resources) > 0 || len(m.templates) > 0 || rawjson.Get(m.listing.Capabilities,
			"resources") != nil)
}

// renamedURIs returns the public URIs that differ from the servers' own URIs. The keys of the maps are the server's ID
// and the server's own URI.
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
