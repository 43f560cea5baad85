package deck

import (
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

var (
	tools     = itemKind{"tool", mcp.MethodToolsList, "name"}
	prompts   = itemKind{"prompt", mcp.MethodPromptsList, "name"}
	resources = itemKind{"resource", mcp.MethodResourcesList, "uri"}
	templates = itemKind{"template", mcp.MethodTemplatesList, "uriTemplate"}
)

// A view contains the servers and items of the deck at one time. It is immutable: a change of the deck creates a new
// view, so readers need no lock.
type view struct {
	guards                               *guardChain
	visibleServers                       *visibilityCache
	servers                              []*serverState
	byID                                 map[drawbridge.ServerID]*serverState
	tools, prompts, resources, templates *itemIndex
	// resourceTree contains the servers by the public URIs of their resources. renamedByServer returns the public URIs
	// that differ from the servers' own URIs; see renamedURIs. It computes them on the first call.
	resourceTree    *resourceTree
	renamedByServer func() map[drawbridge.ServerID]map[string]string
}

// A serverState contains a configured server, its last listing and its items. It is immutable.
type serverState struct {
	Server
	scopes []drawbridge.Scope
	// listing is the last listing, in which the texts about the server are vetted. rawListing is the same listing as
	// the server sent it. Both are nil before the first listing.
	listing, rawListing                  *drawbridge.Listing
	tools, prompts, resources, templates []*item
	// pages are the resources that the tools name as their pages and that the server does not list; see unlistedPages.
	pages   []*item
	omitted []OmittedItem
	notes   []VettingNote
	// late is set if the server was added after the first configuration of the deck; see nameRank.
	late bool
	// skills and directories report whether the server supports the methods for skills and resources/directory/read.
	skills, directories bool
}

func (v *view) server(id drawbridge.ServerID) *serverState { return v.byID[id] }

// newView returns a view of the shipped cards and of the members, which are in configuration order. An item that has
// its preferred name in the view before is a holder of the name; see nameRank. Lists that are unchanged since the view
// old keep their versions; other lists get versions from next. before and old may be nil.
func newView(g *guardChain, shipped []*item, members []*serverState, before, old *view, next func() uint64) *view {
	v := &view{guards: g, visibleServers: newVisibilityCache(), servers: members,
		byID: make(map[drawbridge.ServerID]*serverState, len(members))}
	for _, m := range members {
		v.byID[m.ID] = m
	}
	var own, inside, ownTemplates []serverItems
	for _, it := range shipped {
		switch {
		case it.template != nil:
			ownTemplates = append(ownTemplates, serverItems{scopes: it.spec.Scopes, items: []*item{it}})
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
	// The index of tools is created after the index of resources, because the tools contain the public URIs of their
	// pages.
	v.tools = newItemIndex(g, tools,
		slices.Concat(own, collectServerItems(members, tools, v.toolsWithPageURIs), inside),
		before.indexOf(tools), old.indexOf(tools), next)
	v.prompts = newItemIndex(g, prompts, collectServerItems(members, prompts,
		func(m *serverState) []*item { return m.prompts }), before.indexOf(prompts), old.indexOf(prompts), next)
	v.templates = newItemIndex(g, templates, slices.Concat(ownTemplates, collectServerItems(members, templates,
		func(m *serverState) []*item { return m.templates })), before.indexOf(templates), old.indexOf(templates), next)
	return v
}

// mayKnowServer reports whether the server is visible to the caller. The caller must have the scopes of the server. A
// server that has items but no resources is visible if at least one item is visible. Any other server is visible unless
// guards hide the whole server, because it may have unlisted resources or get items later.
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

// indexOf returns the index of the items of kind k; nil if v is nil.
func (v *view) indexOf(k itemKind) *itemIndex {
	if v == nil {
		return nil
	}
	return v.indexForMethod(k.list)
}

// indexForMethod returns the index of the items that a method lists, such as v.tools for tools/list. It returns nil for
// any other method.
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

// clashesOf returns the name clashes of a server's items in all indexes. The caller may change the slice.
func (v *view) clashesOf(id drawbridge.ServerID) (out []NameClash) {
	for _, s := range v.allIndexes() {
		out = append(out, s.clashes[id]...)
	}
	return out
}

// collectServerItems returns the items of kind k of each member, with the cache hint that the server sent for its list.
// pick returns these items of a member. A member without a listing may get items at any time, so its hint forbids
// caching.
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

// makeItems creates the items of a server from its offers. If an offer is unchanged, it reuses the item in before.
// listed reports whether the server had items or a listing before; then new items are late, see nameRank.
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
		if !card.hasOutputSchema {
			it.sampler = &outputSampler{}
		}
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
