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
	// word is the name for people, list the method that lists the kind, and member the member that the deck may rename.
	word, list, member string
}

// An item is a tool, prompt, resource or template in an index. It is immutable.
type item struct {
	// kind is the word of its itemKind.
	kind string
	// spec has the listed name or URI as Name, the server's own as Tool, and the listed object as Definition.
	spec drawbridge.Spec
	// offer is the object as it may be shown, with its own name.
	offer offeredItem
	// names are the possible public names, best first.
	names []drawbridge.CardName
	// card is set for tools, and template for templates that can be matched.
	card     drawbridge.Card
	template *naming.Template
	// late is set if the server had a listing without the item before. See nameRank.
	late bool
	// pageURIs are the server's URIs of the pages that a tool names.
	pageURIs []string
	// inside is set for a tool that only some callers see, see [OwnToolsGuard].
	inside bool
}

// An itemIndex holds the items of one kind in listed order. A change makes a new index.
type itemIndex struct {
	guards *guardChain
	items  []*item
	// claimed items are not listed, but their names are taken and they can be called.
	claimed  []*item
	byName   map[string]*item
	groups   []itemGroup
	fullList List

	clashes map[drawbridge.ServerID][]NameClash
	omitted map[drawbridge.ServerID][]OmittedItem

	// byAlias and byOwner are built on first use: most callers use the listed names.
	byAlias func() map[string][]*item
	byOwner func() map[ownerKey]*item

	mu sync.Mutex
	// partialLists caches the lists of callers who see a part of the index, by the groups that they see.
	partialLists *simplelru.LRU[string, List]
	// next returns a fresh version.
	next func() uint64
}

// maxParts bounds the cached partial lists.
const maxParts = 64

func newPartialLists() *simplelru.LRU[string, List] {
	lists, _ := simplelru.NewLRU[string, List](maxParts, nil) // the error is for sizes below 1
	return lists
}

type ownerKey struct {
	server drawbridge.ServerID
	own    string
}

// An itemGroup is a run of items that the same callers see.
type itemGroup struct {
	scopes []drawbridge.Scope
	items  []json.RawMessage
	// from is the position of its first item in the index.
	from int
	// hint bounds the cache hint of the list; nil does not.
	hint *drawbridge.CacheHint
	// inside is set for items that only some callers see, see [OwnToolsGuard]. They are not in the full list.
	inside bool
}

// serverItems are the items of one server, or of Drawbridge itself, for one index.
type serverItems struct {
	scopes []drawbridge.Scope
	items  []*item
	// claims take names too, but are not listed.
	claims []*item
	hint   *drawbridge.CacheHint
	// fromProject reports that a project brought the server, late that it was added to a running deck. See nameRank.
	fromProject, late bool
	inside            bool // see itemGroup
}

// newItemIndex builds the index of the stacks in their order, with the names of assignNames. Lists of the old index
// with the same items keep their versions; with nil all lists get new ones.
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
	for _, st := range stacks { // those with inside items come last
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

// A nameRank orders items that want the same name: the first has it.
type nameRank uint8

// The ranks. Early items are those of the first configuration and of a server's first listing: their order does not
// depend on which server answers first. What comes later takes no name from an item that has it, since a person may
// have allowed the item by that name. A project's servers take no names from the person's own.
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

// rankOf returns the rank of an item for its best name; holder reports that the item has the name already.
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

// assignNames returns each item under its name; nil for one whose names are all taken. Items of one rank come in the
// order of the stacks. Holders is the index from which items keep their names; nil for none.
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

// assignName returns the item under a free name; nil if all its names are taken.
func (s *itemIndex) assignName(k itemKind, it *item) *item {
	best := s.byName[string(it.names[0])]
	if best == nil {
		s.byName[string(it.names[0])] = it
		return it
	}
	server := it.spec.Server
	if best.spec.Server == server && best.spec.Tool == it.spec.Tool {
		return it // a server that lists a URI twice: both are its own, and they are called alike
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

// withName returns the item under another of its names.
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

// reuseVersions sets the versions of the lists; unchanged lists keep the version that they have in old.
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

// sameBytes reports whether two values are equal, quickly if they are the same memory.
func sameBytes(a, b json.RawMessage) bool {
	if len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) {
		return true
	}
	return bytes.Equal(a, b)
}

// listForCaller returns the part of the list that the caller may see.
func (s *itemIndex) listForCaller(caller drawbridge.Caller) List {
	seen := make([]byte, len(s.groups))
	all := caller.Kind != drawbridge.Nobody
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
				if it := s.items[g.from+j]; !screened || !s.guards.hides(caller, it.kind, it.spec) {
					list.Items = append(list.Items, raw)
				}
			}
		}
	}
	list.CacheHint = combinedHint(groups, false)
	s.partialLists.Add(string(seen), list)
	return list
}

// combinedHint returns the strictest hint of the groups. A partial list must not be shared with other callers.
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
	return caller.HasScopes(it.spec.Scopes) && (!it.inside || s.guards.showsOwnTools(caller)) && !s.guards.hides(caller, it.kind, it.spec)
}

// findByName returns the item that is listed by name, or else the only one with that name in another style. It skips
// items that are hidden from the caller.
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

// equalizeTiming makes an unknown name take as long as a hidden one. It judges further items until most have been
// judged.
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

// itemsByAlias returns the items by the names under which they are not listed.
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

// findByOwnName returns a server's item by its own name or URI, listed or claimed; nil if there is none.
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
