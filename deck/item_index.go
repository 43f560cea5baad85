package deck

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
)

// An itemKind is one of the four kinds of listed items: tool, prompt, resource or template.
type itemKind struct {
	// word is the name of the kind, such as "tool". list is the method that lists the kind. member is the member of a
	// listed object that contains the name or URI, which the deck may replace.
	word, list, member string
}

// An item is a tool, prompt, resource or template in an index. It is immutable.
type item struct {
	// kind is the word of its itemKind.
	kind string
	// spec is the listed form of the item: Name is the listed name or URI, Tool is the server's own name or URI, and
	// Definition is the listed object.
	spec drawbridge.Spec
	// offer is the server's object in the form that may be shown, with the server's own name instead of the public
	// name.
	offer offeredItem
	// names are the possible public names, in order of preference. assignName chooses the first name that is not taken.
	names []drawbridge.CardName
	// card is set for tools, except for the search tools. template is set for templates with valid syntax, which URIs
	// are compared with.
	card     drawbridge.Card
	template *naming.Template
	// late is set if the item was added by a later listing than the server's first one. Late items have a lower
	// priority for names; see nameRank.
	late bool
	// sampler is set for a server's tool without an output schema.
	sampler *outputSampler
	// pageURIs are the server's URIs of the pages that the tool names.
	pageURIs []string
	// inside is set for one of Drawbridge's own tools in [Options].Tools, which are visible only to some callers; see
	// [OwnToolsGuard].
	inside bool
}

// An itemIndex contains the items of one kind in listed order. Its items never change: a change of the deck creates a
// new view with new indexes.
type itemIndex struct {
	guards *guardChain
	items  []*item
	// claimed are items that have a public name but are not listed, such as unlisted pages. No other item can get their
	// names, and callers can use them.
	claimed  []*item
	byName   map[string]*item
	groups   []itemGroup
	fullList List

	clashes map[drawbridge.ServerID][]NameClash
	omitted map[drawbridge.ServerID][]OmittedItem

	// byAlias returns the items by the names that they have in other naming styles. byOwner returns the items by server
	// and own name. Both maps are built on first use, because most callers use the listed names.
	byAlias func() map[string][]*item
	byOwner func() map[ownerKey]*item

	mu sync.Mutex
	// partialLists caches the lists for callers to whom not all items are visible. The key consists of one byte for
	// each group, which is 1 if the group is visible, and of the caller's class.
	partialLists *simplelru.LRU[string, List]
	// next returns a new version number.
	next func() uint64
}

// maxParts is the maximum number of partial lists that one index caches.
const maxParts = 64

func newPartialLists() *simplelru.LRU[string, List] {
	lists, _ := simplelru.NewLRU[string, List](maxParts, nil) // the error is for sizes below 1
	return lists
}

type ownerKey struct {
	server drawbridge.ServerID
	own    string
}

// An itemGroup is a sequence of successive items in an index for which a caller needs the same scopes.
type itemGroup struct {
	scopes []drawbridge.Scope
	items  []json.RawMessage
	// from is the position of the group's first item in the index.
	from int
	// hint limits how long a list with this group may be cached; nil means no limit.
	hint *drawbridge.CacheHint
	// inside is set for a group of Drawbridge's own tools, which are visible only to some callers; see [OwnToolsGuard].
	// Such a group is not in fullList.
	inside bool
}

// serverItems are the items of one kind that one server, or Drawbridge itself, contributes to an index.
type serverItems struct {
	scopes []drawbridge.Scope
	items  []*item
	// claims are items that get names but are not listed; see itemIndex.claimed.
	claims []*item
	hint   *drawbridge.CacheHint
	// fromProject reports whether the server is configured in a project directory. late reports whether the server was
	// added after the first configuration of the deck. See nameRank.
	fromProject, late bool
	inside            bool // see itemGroup
}

// newItemIndex returns an index of the items in stacks, in this order. An item that has its preferred name in the index
// holders is a holder of the name; see nameRank. If the full list has the same items as in the index old, it keeps its
// version. If old is nil, all lists get new versions from next.
func newItemIndex(g *guardChain, k itemKind, stacks []serverItems, holders, old *itemIndex,
	next func() uint64) *itemIndex {
	n := 0
	for _, st := range stacks {
		n += len(st.items)
	}
	s := &itemIndex{
		guards:       g,
		items:        make([]*item, 0, n),
		byName:       make(map[string]*item, n),
		clashes:      map[drawbridge.ServerID][]NameClash{},
		omitted:      map[drawbridge.ServerID][]OmittedItem{},
		partialLists: newPartialLists(),
		next:         next,
	}
	named := s.assignNames(k, stacks, holders)
	raw, full := make([]json.RawMessage, 0, n), 0
	for _, st := range stacks { // stacks with inside items are last
		from := len(raw)
		for _, it := range st.items {
			if placed := named[it]; placed != nil {
				s.items = append(s.items, placed)
				raw = append(raw, placed.spec.Definition)
				continue
			}
			s.omitted[it.spec.Server] = append(s.omitted[it.spec.Server], OmittedItem{Kind: k.word, Name: it.spec.Tool,
				Reason: "another server has its name"})
		}
		for _, it := range st.claims {
			if it = named[it]; it != nil {
				s.claimed = append(s.claimed, it)
			}
		}
		if len(raw) > from || st.hint != nil {
			s.groups = append(s.groups, itemGroup{st.scopes, raw[from:len(raw):len(raw)], from, st.hint, st.inside})
		}
		if !st.inside {
			full = len(raw)
		}
	}
	s.byAlias, s.byOwner = sync.OnceValue(s.itemsByAlias), sync.OnceValue(s.itemsByOwner)
	s.fullList = List{Items: raw[:full:full], CacheHint: combinedHint(s.groups, !g.hidesAnything())}
	s.reuseVersions(old)
	return s
}

// A nameRank is the priority of an item that prefers the same name as another item. The item with the lowest rank gets
// the name.
type nameRank uint8

// The ranks, highest priority first. Own items are from servers that the person configured, Project items from servers
// of a project directory. Early items are from the first configuration and from a server's first listing; Late items
// were added afterwards. A Holder is a late item that already has the name. Among early items the order does not depend
// on which server answers first. A late item does not get the name of an existing item, because a person may have
// allowed the existing item by its name. Otherwise, items of the person's own servers have priority over a project's
// items.
const (
	rankShipped nameRank = iota
	rankOwnEarly
	rankOwnHolder
	rankProjectEarly
	rankProjectHolder
	rankOwnLate
	rankProjectLate
	rankInside
)

// rankOf returns the rank of an item for its preferred name. holder reports whether the item already has this name.
func (st serverItems) rankOf(it *item, holder bool) nameRank {
	late := it.late || st.late
	switch {
	case it.inside:
		return rankInside
	case it.spec.Server == "" || it.spec.Server == drawbridge.OwnServer:
		return rankShipped
	case !late && !st.fromProject:
		return rankOwnEarly
	case holder && !st.fromProject:
		return rankOwnHolder
	case !late:
		return rankProjectEarly
	case holder:
		return rankProjectHolder
	case !st.fromProject:
		return rankOwnLate
	}
	return rankProjectLate
}

// assignNames assigns a public name to each item, in the order of their ranks. Items of the same rank are in the order
// of the stacks. An item that has its preferred name in the index holders, which may be nil, is a holder of the name;
// see nameRank. The result maps each item to a copy with the assigned name, or to nil if all possible names are taken.
func (s *itemIndex) assignNames(k itemKind, stacks []serverItems, holders *itemIndex) map[*item]*item {
	type ranked struct {
		it   *item
		rank nameRank
	}
	var order []ranked
	for _, st := range stacks {
		for _, items := range [][]*item{st.items, st.claims} {
			for _, it := range items {
				order = append(order, ranked{it, st.rankOf(it, holders.hasName(it))})
			}
		}
	}
	slices.SortStableFunc(order, func(a, b ranked) int { return int(a.rank) - int(b.rank) })
	named := make(map[*item]*item, len(order))
	for _, o := range order {
		named[o.it] = s.assignName(k, o.it)
	}
	return named
}

// hasName reports whether the item of this server and own name has its preferred name in the index. It returns false if
// s is nil.
func (s *itemIndex) hasName(it *item) bool {
	if s == nil {
		return false
	}
	holder := s.byName[string(it.names[0])]
	return holder != nil && holder.spec.Server == it.spec.Server && holder.spec.Tool == it.spec.Tool
}

// assignName returns the item with the first of its possible names that is not taken, and takes this name. It returns
// nil if all of them are taken. If the preferred name is taken, it adds a clash to s.clashes.
func (s *itemIndex) assignName(k itemKind, it *item) *item {
	best := s.byName[string(it.names[0])]
	if best == nil {
		s.byName[string(it.names[0])] = it
		return it
	}
	server := it.spec.Server
	if best.spec.Server == server && best.spec.Tool == it.spec.Tool {
		return it // the server listed the URI twice; a call is the same for both
	}
	clash := NameClash{Kind: k.word, Name: string(it.names[0]), Winner: best.spec.Server, Tool: it.spec.Tool}
	others := it.names[1:]
	if k.member == "name" {
		others = append(slices.Clone(others), naming.FallbackName(server, it.offer.Name))
	}
	for _, name := range others {
		if s.byName[string(name)] == nil {
			it = it.withName(k, name)
			s.byName[string(name)] = it
			clash.Listed = string(name)
			s.clashes[server] = append(s.clashes[server], clash)
			return it
		}
	}
	s.clashes[server] = append(s.clashes[server], clash)
	return nil
}

// withName returns a copy of the item with another name.
func (it *item) withName(k itemKind, name drawbridge.CardName) *item {
	out := *it
	out.spec.Name = name
	out.spec.Definition = replaceName(it.offer.Raw, k.member, it.offer.Name, string(name))
	if b, ok := it.card.(upstreamCard); ok {
		b.spec = out.spec
		out.card = b
	}
	return &out
}

// reuseVersions sets the version of the full list. If the list has the same items as in the index old, it keeps the
// version of old. If the groups are unchanged too, the cached partial lists are moved from old to s. If old is nil, the
// list gets a new version.
func (s *itemIndex) reuseVersions(old *itemIndex) {
	if old == nil || !slices.EqualFunc(old.fullList.Items, s.fullList.Items, sameBytes) {
		s.fullList.Version = s.next()
		return
	}
	s.fullList.Version = old.fullList.Version
	sameGroup := func(a, b itemGroup) bool {
		return len(a.items) == len(b.items) && slices.Equal(a.scopes, b.scopes) && sameHint(a.hint, b.hint)
	}
	if slices.EqualFunc(old.groups, s.groups, sameGroup) {
		old.mu.Lock()
		defer old.mu.Unlock()
		s.partialLists = old.partialLists
		old.partialLists = newPartialLists()
	}
}

// sameBytes reports whether two values are equal. If both share the same memory, it does not compare the bytes.
func sameBytes(a, b json.RawMessage) bool {
	if len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) {
		return true
	}
	return bytes.Equal(a, b)
}

// listForCaller returns the list of the items that are visible to the caller.
func (s *itemIndex) listForCaller(caller drawbridge.Caller) List {
	seen := make([]byte, len(s.groups))
	fromScript := caller.Kind == drawbridge.Sandbox
	all := caller.Kind != drawbridge.Nobody && !fromScript
	inside := s.guards.showsOwnTools(caller)
	for i, g := range s.groups {
		switch {
		case g.inside && !inside:
		case caller.HasScopes(g.scopes):
			seen[i] = 1
			all = all && !g.inside
		default:
			all = false
		}
	}
	screened := s.guards.hidesAnything()
	if all && !screened {
		return s.fullList
	}
	if screened {
		seen = append(seen, s.guards.callerClass(caller)...)
	}
	if fromScript {
		seen = append(seen, "script"...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if list, ok := s.partialLists.Get(string(seen)); ok {
		return list
	}
	var groups []itemGroup
	list := List{Version: s.next()}
	for i, g := range s.groups {
		if seen[i] == 1 {
			groups = append(groups, g)
			for j, raw := range g.items {
				it := s.items[g.from+j]
				if mayRunInScripts(caller, it) && (!screened || !s.guards.hides(caller, it.kind, it.spec)) {
					list.Items = append(list.Items, raw)
				}
			}
		}
	}
	list.CacheHint = combinedHint(groups, false)
	s.partialLists.Add(string(seen), list)
	return list
}

// combinedHint returns the strictest cache hint of the groups. whole reports whether the list contains all items. If it
// is false, the result forbids that callers share the cached list.
func combinedHint(groups []itemGroup, whole bool) drawbridge.CacheHint {
	var out *drawbridge.CacheHint
	for _, g := range groups {
		out = stricterHint(out, g.hint)
	}
	if out == nil {
		return drawbridge.CacheHint{}
	}
	return drawbridge.CacheHint{TTL: out.TTL, Public: out.Public && whole}
}

// visibleTo reports whether the item is visible to the caller.
func (s *itemIndex) visibleTo(caller drawbridge.Caller, it *item) bool {
	return caller.HasScopes(it.spec.Scopes) && mayRunInScripts(caller, it) && (!it.inside || s.guards.showsOwnTools(caller)) && !s.guards.hides(caller, it.kind, it.spec)
}

// mayRunInScripts returns false only if the caller is a script in the sandbox and the item is a tool that scripts may
// not call.
func mayRunInScripts(caller drawbridge.Caller, it *item) bool {
	return caller.Kind != drawbridge.Sandbox || it.kind != tools.word || it.spec.Sandbox
}

// findByName returns the visible item that is listed under name. If there is none, it returns the visible item that has
// this name in another naming style, if there is exactly one. Otherwise it returns nil.
func (s *itemIndex) findByName(caller drawbridge.Caller, name string) *item {
	listed := s.byName[name]
	if listed != nil && s.visibleTo(caller, listed) {
		return listed
	}
	var found *item
	others := s.byAlias()[name]
	for _, it := range others {
		if !s.visibleTo(caller, it) {
			continue
		}
		if found != nil {
			return nil
		}
		found = it
	}
	if found == nil {
		s.equalizeTiming(caller, name, 2, append(others[:len(others):len(others)], listed))
	}
	return found
}

// equalizeTiming makes the search for an unknown name take as long as the search for a hidden name, so that callers
// cannot detect hidden names. The caller of equalizeTiming has already asked the guards about the items in judged.
// equalizeTiming asks the guards about further items, until they were asked about most items in total.
func (s *itemIndex) equalizeTiming(caller drawbridge.Caller, name string, most int, judged []*item) {
	for _, it := range judged {
		if it != nil && caller.HasScopes(it.spec.Scopes) {
			most--
		}
	}
	for ; most > 0 && len(s.items) > 0; most-- {
		it := s.items[(len(name)+most)%len(s.items)]
		s.guards.hides(caller, it.kind, it.spec)
	}
}

// itemsByAlias returns the servers' items by the names that they have in naming styles other than the deck's.
func (s *itemIndex) itemsByAlias() map[string][]*item {
	out := make(map[string][]*item, 2*len(s.items))
	for _, it := range s.items {
		if it.spec.Server == "" {
			continue
		}
		server, own := it.spec.Server, it.spec.Tool
		names := []string{string(naming.QualifiedName(server, own)), string(naming.MCPName(server, own)), own}
		for i, name := range names {
			if name != string(it.spec.Name) && !slices.Contains(names[:i], name) {
				out[name] = append(out[name], it)
			}
		}
	}
	return out
}

// findByOwnName returns the listed or claimed item with this own name or URI of the server, or nil.
func (s *itemIndex) findByOwnName(server drawbridge.ServerID, own string) *item {
	return s.byOwner()[ownerKey{server, own}]
}

func (s *itemIndex) itemsByOwner() map[ownerKey]*item {
	out := make(map[ownerKey]*item, len(s.items)+len(s.claimed))
	for _, items := range [][]*item{s.items, s.claimed} {
		for _, it := range items {
			key := ownerKey{it.spec.Server, it.spec.Tool}
			if out[key] == nil {
				out[key] = it
			}
		}
	}
	return out
}

// itemsOfServer returns the listed items of one server, in listed order.
func (s *itemIndex) itemsOfServer(server drawbridge.ServerID) []*item {
	var out []*item
	for _, it := range s.items {
		if it.spec.Server == server {
			out = append(out, it)
		}
	}
	return out
}
