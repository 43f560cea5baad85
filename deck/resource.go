package deck

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// findResource finds the server of a URI. Before it says that there is none it waits for servers that are about to
// appear.
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

// findCompletionRef finds the server of a completion's reference: a template as it is listed, or any URI.
func (d *Deck) findCompletionRef(ctx context.Context, log *audit.LoggedCall, caller drawbridge.Caller,
	uri string) (callTarget, error) {
	if t, ok := d.view.Load().templates.findURI(caller, uri); ok {
		return t, nil
	}
	return d.findResource(ctx, log, caller, uri)
}

// findURIOwner finds the owner of a URI: the server that the deck knows it from, that has the skill in which it lies,
// whose it may be, or that gave the caller's principal a link to it.
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

// knowsURI says whether a URI is listed, or looks like what a server says its URIs look like.
func (v *view) knowsURI(caller drawbridge.Caller, uri string) bool {
	_, named := v.findKnownURI(caller, uri)
	return named || v.templates.closestTemplate(caller, uri) != nil
}

// findKnownURI finds the owner of a URI that the deck knows: the server that lists it, or the one it names.
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

// matchURI finds the owner of any other URI: the server with the template that it matches most closely; or, where only
// one server has resources, that one, since servers need not list all of them.
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

// ifVisible gives a target that no list has, unless it is hidden from the caller.
func (v *view) ifVisible(caller drawbridge.Caller, t callTarget) (callTarget, bool) {
	if v.hidesTarget(caller, t) {
		return callTarget{}, false
	}
	return t, true
}

func (v *view) hidesTarget(caller drawbridge.Caller, t callTarget) bool {
	return v.guards.hides(caller, t.kind, t.spec)
}

// findURI gives the item that is listed by this URI.
func (s *itemIndex) findURI(caller drawbridge.Caller, uri string) (callTarget, bool) {
	it := s.byName[uri]
	if it == nil || !s.visibleTo(caller, it) {
		s.equalizeTiming(caller, uri, 1, []*item{it})
		return callTarget{}, false
	}
	return it.asTarget(), true
}

// closestTemplate gives the template with the most literal characters of those that match; of equals the first.
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

// templateTarget is the target for a URI that matches a template. Whether the template itself is hidden does not
// matter.
func templateTarget(it *item, uri string) callTarget {
	t := callTarget{spec: it.spec, kind: resources.word, ownName: uri}
	t.spec.Name, t.spec.Tool = drawbridge.CardName(uri), uri
	return t
}

// unlistedResource is the target for a URI of the member that it does not list.
func (m *serverState) unlistedResource(uri, own string) callTarget {
	return callTarget{
		spec:    drawbridge.Spec{Name: drawbridge.CardName(uri), Server: m.ID, Tool: own, Scopes: m.scopes},
		kind:    resources.word,
		ownName: own,
	}
}

// hasResources says whether the server has resources at all, listed or not.
func (m *serverState) hasResources() bool {
	return m.listing != nil &&
		(m.skills || len(m.resources) > 0 || len(m.templates) > 0 || rawjson.Get(m.listing.Capabilities,
			"resources") != nil)
}

// renamedURIs gives, by server and own URI, the names of the resources that are not called by their own.
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
