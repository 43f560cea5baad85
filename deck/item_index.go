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

// An itemKind is one of the four kinds of listed items.
type itemKind struct {
	// word is the name of the kind for people. list is the method that lists the kind. member is the member of an item
	// that the deck may rename.
	word, list, member string
}

// An item is a tool, prompt, resource or template in an index. It is immutable.
type item struct {
	// kind is the word of its itemKind.
	kind string
	// spec is the listed form of the item: Name is the listed name or URI, Tool is the server's own, and Definition is the
	// listed object.
	spec drawbridge.Spec
	// offer is the form of the object that may be shown, before the deck assigns a name.
	offer offeredItem
	// names are the possible public names, best first.
	names []drawbridge.CardName
	// card is set for tools. template is set for templates that can be matched.
	card     drawbridge.Card
	template *naming.Template
	// late is set if an earlier listing of the server did not have the item. See nameRank.
	late bool
	// pageURIs are the server's URIs of the pages that the tool names.
	pageURIs []string
	// inside is set for one of Drawbridge's own tools, which only some callers see; see [OwnToolsGuard].
	inside bool
}

// An itemIndex has the items of one kind in listed order. It does not change: a new view gets new indexes.
type itemIndex struct {
	guards *guardChain
	items  []*item
	// claimed are items that are not listed. Their names are taken, and they can be called.
	claimed  []*item
	byName   map[string]*item
	groups   []itemGroup
	fullList List

	clashes map[drawbridge.ServerID][]NameClash
	omitted map[drawbridge.ServerID][]OmittedItem

	// byAlias and byOwner are built on first use, because most callers use the listed names.
	byAlias func() map[string][]*item
	byOwner func() map[ownerKey]*item

	mu sync.Mutex
	// partialLists caches the lists for callers that do not see all items. The key is the groups that the caller sees,
	// with its class.
	partialLists *simplelru.LRU[string, List]
	// next returns a new version number.
	next func() uint64
}

// maxParts is the maximum number of cached partial lists.
const maxParts = 64

func newPartialLists() *simplelru.LRU[string, List] {
	lists, _ := simplelru.NewLRU[string, List](maxParts, nil) // the error is for sizes below 1
	return lists
}

type ownerKey struct {
	server drawbridge.ServerID
	own    string
}

// An itemGroup is a sequence of items that need the same scopes.
type itemGroup struct {
	scopes []drawbridge.Scope
	items  []json.RawMessage
	// from is the position of the group's first item in the index.
	from int
	// hint limits the cache hint of a list with this group; nil means no limit.
	hint *drawbridge.CacheHint
	// inside is set for Drawbridge's own tools, which only some callers see; see [OwnToolsGuard]. They are not in the full
	// list.
	inside bool
}

// serverItems are the items for one index from one server, or from Drawbridge itself.
type serverItems struct {
	scopes []drawbridge.Scope
	items  []*item
	// claims are items that take names but are not listed.
	claims []*item
	hint   *drawbridge.CacheHint
	// fromProject reports whether a project added the server. late reports whether it was added to a running deck. See
	// nameRank.
	fromProject, late bool
	inside            bool // see itemGroup
}

// newItemIndex returns an index of the items in stacks, in this order. assignNames chooses their names; items keep the
// names that they have in holders. Lists with the same items as in old keep their versions; if old is nil, all lists
// get new versions.
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

// A nameRank orders items that have the same best name. The item with the lowest rank gets the name.
type nameRank uint8

// The ranks. Early items are from the first configuration and from a server's first listing. So their order does not
// depend on which server answers first. A later item does not take the name of an existing item, because a person may
// have allowed the existing item by its name. A project's server does not take a name from the person's own servers.
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

// rankOf returns the rank of an item for its best name. holder reports whether the item already has this name.
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

// assignNames assigns a name to each item. The result maps each item to the item with its assigned name, or to nil if
// all its names are taken. Items of the same rank are in the order of the stacks. Items keep the names that they have
// in the index holders, which may be nil.
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

// hasName reports whether the item has its best name in the index.
func (s *itemIndex) hasName(it *item) bool {
	if s == nil {
		return false
	}
	holder := s.byName[string(it.names[0])]
	return holder != nil && holder.spec.Server == it.spec.Server && holder.spec.Tool == it.spec.Tool
}

// assignName returns the item with its first free name; nil if all its names are taken.
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

// reuseVersions sets the versions of the lists. A list that is unchanged since old keeps its version and its cached
// partial lists.
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

// sameBytes reports whether two values are equal. It is fast if both are the same memory.
func sameBytes(a, b json.RawMessage) bool {
	if len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) {
		return true
	}
	return bytes.Equal(a, b)
}

// listForCaller returns the part of the list that the caller may see.
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

// combinedHint returns the strictest hint of the groups. whole reports whether the list is the full list; a partial
// list must not be shared with other callers.
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

// mayRunInScripts reports whether the item is not a tool that is kept from scripts, or the caller is not a script.
func mayRunInScripts(caller drawbridge.Caller, it *item) bool {
	return caller.Kind != drawbridge.Sandbox || it.kind != tools.word || it.spec.Sandbox
}

// findByName returns the visible item that is listed under name. If there is none, it returns the only visible item
// that has this name in another naming style.
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

// equalizeTiming makes the search for an unknown name take the same time as for a hidden name. It asks the guards about
// further items, until most items have been checked. judged are the items that were already checked.
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

// itemsByAlias returns the items by the names that they have in other naming styles.
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

// findByOwnName returns a server's item, listed or claimed, by the server's own name or URI; nil if there is no such
// item.
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

// itemsOfServer returns the items of one server, in their order.
func (s *itemIndex) itemsOfServer(server drawbridge.ServerID) []*item {
	var out []*item
	for _, it := range s.items {
		if it.spec.Server == server {
			out = append(out, it)
		}
	}
	return out
}
