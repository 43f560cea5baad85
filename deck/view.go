package deck

import (
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/skillmerge"
)

var (
	tools     = itemKind{"tool", mcp.MethodToolsList, "name"}
	prompts   = itemKind{"prompt", mcp.MethodPromptsList, "name"}
	resources = itemKind{"resource", mcp.MethodResourcesList, "uri"}
	templates = itemKind{"template", mcp.MethodTemplatesList, "uriTemplate"}
)

// A view is the state of the deck at one time. It is immutable: readers load it without a lock, and a change creates a
// new view.
type view struct {
	guards                               *guardChain
	visibleServers                       *visibilityCache
	servers                              []*serverState
	byID                                 map[drawbridge.ServerID]*serverState
	tools, prompts, resources, templates *itemIndex
	// resourceTree has the resources by path, with their servers. renamedByServer returns the resources whose public URI
	// differs from the server's URI; it is computed on first use.
	resourceTree    *skillmerge.ResourceTree
	renamedByServer func() map[drawbridge.ServerID]map[string]string
}

// A serverState is a configured server with its vetted and named items. It is immutable.
type serverState struct {
	Server
	scopes []drawbridge.Scope
	// listing is the last listing, with the vetted texts about the server. rawListing is the listing as the server sent
	// it. Both are nil before the first listing.
	listing, rawListing                  *drawbridge.Listing
	tools, prompts, resources, templates []*item
	// pages are resources that the tools name as their pages but that the server does not list.
	pages   []*item
	omitted []OmittedItem
	notes   []VettingNote
	// late is set if the server was added to a running deck.
	late bool
	// skills and directories report whether the server answers the methods for skills and for directories.
	skills, directories bool
}

func (v *view) server(id drawbridge.ServerID) *serverState { return v.byID[id] }

// newView returns a view of the shipped cards and the members, in configuration order. Items keep the names that they
// have in before. Unchanged lists keep the versions that they have in old. Both may be nil.
func newView(g *guardChain, shipped []*item, members []*serverState, before, old *view, next func() uint64) *view {
	v := &view{guards: g, visibleServers: newVisibilityCache(), servers: members,
		byID: make(map[drawbridge.ServerID]*serverState, len(members))}
	for _, m := range members {
		v.byID[m.ID] = m
	}
	var own, inside []serverItems
	for _, it := range shipped {
		switch {
		case it.card == nil:
			own = append(own, serverItems{claims: []*item{it}})
		case it.inside:
			inside = append(inside, serverItems{scopes: it.spec.Scopes, items: []*item{it}, inside: true})
		default:
			own = append(own, serverItems{scopes: it.spec.Scopes, items: []*item{it}})
		}
	}
	v.resources = newItemIndex(g, resources, collectServerItems(members, resources,
		func(m *serverState) []*item { return m.resources }), before.indexOf(resources), old.indexOf(resources), next)
	v.resourceTree, v.renamedByServer = v.newResourceTree(), sync.OnceValue(v.renamedURIs)
	// The tools come after the resources, because the public URI of a tool's page depends on the URIs that are already
	// taken.
	v.tools = newItemIndex(g, tools,
		slices.Concat(own, collectServerItems(members, tools, v.toolsWithPageURIs), inside),
		before.indexOf(tools), old.indexOf(tools), next)
	v.prompts = newItemIndex(g, prompts, collectServerItems(members, prompts,
		func(m *serverState) []*item { return m.prompts }), before.indexOf(prompts), old.indexOf(prompts), next)
	v.templates = newItemIndex(g, templates, collectServerItems(members, templates,
		func(m *serverState) []*item { return m.templates }), before.indexOf(templates), old.indexOf(templates), next)
	return v
}

// mayKnowServer reports whether the server is visible to the caller. The caller must have the scopes of the server, and
// the guards must not hide everything that the server offers.
func (v *view) mayKnowServer(caller drawbridge.Caller, m *serverState) bool {
	if !caller.HasScopes(m.scopes) || !v.guards.hidesAnything() {
		return caller.HasScopes(m.scopes)
	}
	return v.visibleServers.getOrFind(v.guards.callerClass(caller), m.ID, func() bool {
		if v.guards.hides(caller, "", drawbridge.Spec{Server: m.ID, Scopes: m.scopes}) {
			return false
		}
		offers := slices.Concat(m.tools, m.prompts, m.resources, m.templates)
		return len(offers) == 0 || m.hasResources() || slices.ContainsFunc(offers, func(it *item) bool {
			return !v.guards.hides(caller, it.kind, it.spec)
		})
	})
}

// indexOf returns the index of a kind; nil if v is nil.
func (v *view) indexOf(k itemKind) *itemIndex {
	if v == nil {
		return nil
	}
	return v.indexForMethod(k.list)
}

// indexForMethod returns the index for a list method, or nil.
func (v *view) indexForMethod(method string) *itemIndex {
	switch method {
	case tools.list:
		return v.tools
	case prompts.list:
		return v.prompts
	case resources.list:
		return v.resources
	case templates.list:
		return v.templates
	}
	return nil
}

func (v *view) allIndexes() []*itemIndex {
	return []*itemIndex{v.tools, v.prompts, v.resources, v.templates}
}

// clashesOf returns the name clashes of a server in a new slice.
func (v *view) clashesOf(id drawbridge.ServerID) (out []NameClash) {
	for _, s := range v.allIndexes() {
		out = append(out, s.clashes[id]...)
	}
	return out
}

// collectServerItems returns each member's items of a kind, with the cache hint of its listing. A member without a
// listing may add items at any time, so its hint forbids caching.
func collectServerItems(members []*serverState, k itemKind, pick func(*serverState) []*item) []serverItems {
	out := make([]serverItems, 0, len(members))
	for _, m := range members {
		st := serverItems{scopes: m.scopes, items: pick(m), fromProject: m.FromProject, late: m.late}
		if k == resources {
			st.claims = m.pages
		}
		if m.listing == nil {
			st.hint = &drawbridge.CacheHint{}
		} else if hint, ok := m.listing.CacheHints[k.list]; ok || len(st.items) > 0 {
			st.hint = &hint // an empty list can change as well as any other
		}
		out = append(out, st)
	}
	return out
}

// An itemMaker creates items from offers.
type itemMaker struct {
	upstream Upstream
	naming   NamingStyle
}

// makeItems creates items from a server's offers. It reuses unchanged items of before. listed reports whether the
// server had a listing before; then new items are late.
func (mk itemMaker) makeItems(k itemKind, server drawbridge.ServerID, offers []offeredItem, before []*item,
	listed bool) []*item {
	old := make(map[string]*item, len(before))
	for _, it := range before {
		old[it.spec.Tool] = it
	}
	out := make([]*item, 0, len(offers))
	for _, o := range offers {
		known := old[o.ownName]
		it := known
		if it == nil || !it.offer.equal(o) {
			it = mk.makeItem(k, server, o)
			it.late = listed && (known == nil || known.late)
		}
		out = append(out, it)
	}
	return out
}

func (mk itemMaker) makeItem(k itemKind, server drawbridge.ServerID, o offeredItem) *item {
	it := &item{kind: k.word, offer: o}
	switch k {
	case tools:
		it.names = naming.ToolNames(mk.naming, server, o.Name)
		card := newUpstreamCard(mk.upstream, server, it.names[0], o.Raw)
		card.spec.Tool, card.spec.Sandbox = o.ownName, !o.notForScripts
		it.card, it.spec = card, card.spec
		it.pageURIs = pageURIsOf(o.Raw)
		return it
	case prompts:
		it.names = naming.ToolNames(mk.naming, server, o.Name)
	default:
		it.names = naming.ResourceURIs(mk.naming, server, o.Name)
	}
	if k == templates {
		it.template, _ = naming.ParseTemplate(o.ownName) // an invalid template is listed and matches nothing
	}
	it.spec = drawbridge.Spec{
		Name: it.names[0], Server: server, Tool: o.ownName,
		Definition: replaceName(o.Raw, k.member, o.Name, string(it.names[0])),
		Title:      oneLine(rawjson.Get(o.Raw, "title")), Summary: oneLine(rawjson.Get(o.Raw, "description")),
		Scopes: []drawbridge.Scope{drawbridge.ServerScope(server)},
	}
	return it
}
