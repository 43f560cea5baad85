package deck

import (
	"bytes"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck/naming"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A catalogue is what one server said to one principal about its skills. It is not changed after it was made.
type catalogue struct {
	member *member
	// listing is the server's when it was asked: another one means that it may have other skills.
	listing *drawbridge.Listing
	// asked is when the server was asked last, refusal why it did not answer then; said that it ever did.
	asked   time.Time
	refusal error
	said    bool

	hint   drawbridge.Hint
	skills []skill
	// found are skills that the server has and does not list.
	found   []skill
	leftOut []LeftOut
}

// fresh says whether the server need not be asked again: for age, or for as long as it allowed where age is 0.
func (c *catalogue) fresh(m *member, now time.Time, age time.Duration) bool {
	switch {
	case c.listing != m.listing:
		return false
	case c.refusal != nil:
		age = max(age, awayAge)
	case age == 0:
		age = c.hint.TTL
	}
	return now.Sub(c.asked) < age
}

// renewed is what is known after the server was asked again: what it says, or, where it does not answer, what it said
// before. c is nil where it was never asked.
func (c *catalogue) renewed(answer *catalogue, refusal error, m *member, now time.Time) *catalogue {
	var out catalogue
	switch {
	case refusal == nil:
		out = *answer
		if c != nil && c.listing == m.listing {
			out.found = c.found
		}
	case c != nil:
		out = *c
	}
	out.member, out.listing, out.asked, out.refusal = m, m.listing, now, refusal
	return &out
}

// add takes a page of a list.
func (c *catalogue) add(page json.RawMessage) {
	hint := hintIn(page)
	c.hint = *stricter(&c.hint, &hint)
	known := make(map[string]bool, len(c.skills))
	for _, s := range c.skills {
		known[s.uri] = true
	}
	for raw := range wire.Elements(wire.Get(page, "skills")) {
		s, reason := readSkill(raw)
		if reason == "" && known[s.uri] {
			reason = "the server lists its uri twice"
		}
		if reason != "" {
			c.leftOut = append(c.leftOut, LeftOut{"skill", s.uri, reason})
			continue
		}
		known[s.uri] = true
		s.raw = bytes.Clone(s.raw)
		c.skills = append(c.skills, s)
	}
}

// hintIn reads the caching hints of a result.
func hintIn(result json.RawMessage) drawbridge.Hint {
	var ms int64
	_ = json.Unmarshal(wire.Get(result, "ttlMs"), &ms) // no number: no hint
	return drawbridge.Hint{
		TTL:    time.Duration(max(0, min(ms, maxSkillAge.Milliseconds()))) * time.Millisecond,
		Public: wire.GetText(result, "cacheScope") == "public",
	}
}

// hintAt is what is left of the hint, in whole seconds, so that not every answer is another one.
func (c *catalogue) hintAt(now time.Time) drawbridge.Hint {
	if c.refusal != nil || !c.said {
		return drawbridge.Hint{}
	}
	return drawbridge.Hint{TTL: max(0, c.hint.TTL-now.Sub(c.asked)).Truncate(time.Second), Public: c.hint.Public}
}

// A skillset is the skills of several servers, put together for one principal. It is not changed after it was made.
type skillset struct {
	view       *view
	catalogues []*catalogue
	// items are the entries as callers see them.
	items   []json.RawMessage
	version uint64
	// owners has the servers by the spaces that are theirs.
	owners  map[string]*member
	clashes map[drawbridge.ServerID][]Clash
}

// maxDepth is the most "/" that a skill's URI may have.
const maxDepth = 64

// up goes through the URI and the directories above it, up to the authority.
func up(uri string) iter.Seq[string] {
	return func(yield func(string) bool) {
		_, rest, ok := naming.CutScheme(uri)
		for yield(uri) && ok {
			i := strings.LastIndexByte(rest, '/')
			if i <= 0 {
				return
			}
			uri, rest = uri[:len(uri)-len(rest)+i], rest[:i]
		}
	}
}

// owner gives the server in whose space the URI lies; nil where it lies in none.
func (s *skillset) owner(uri string) *member {
	if strings.Count(uri, "/") > maxDepth {
		return nil
	}
	for space := range up(uri) {
		if m := s.owners[space]; m != nil {
			return m
		}
	}
	return nil
}

// newSkillset puts the catalogues together, in configuration order.
func newSkillset(v *view, catalogues []*catalogue, style Naming) *skillset {
	s := &skillset{view: v, catalogues: catalogues, owners: map[string]*member{}, clashes: map[drawbridge.ServerID][]Clash{}}
	inside := presence{} // who has skills at or below a URI
	for _, c := range catalogues {
		id := c.member.ID
		for i, sk := range slices.Concat(c.skills, c.found) {
			listed := i < len(c.skills)
			_, _, named := naming.CutServer(sk.uri)
			named = named && style != Bare // it looks like another server's, and is never listed as it is
			winner, clash := s.winner(sk, id, inside)
			switch {
			case !clash && !named:
				s.owners[sk.space()] = c.member
				inside.add(sk.space(), id)
				if listed {
					s.items = append(s.items, sk.raw)
				}
				continue
			case !listed:
				continue
			}
			lost := Clash{Kind: "skill", Name: sk.uri, Winner: winner, Tool: sk.uri}
			if style != Bare {
				s.items = append(s.items, sk.qualified(id))
				lost.Listed = naming.InAuthority(id, sk.uri)
			}
			if clash {
				s.clashes[id] = append(s.clashes[id], lost)
			}
		}
	}
	return s
}

// winner says whether something of the skill's space is another server's already, and whose.
func (s *skillset) winner(sk skill, id drawbridge.ServerID, inside presence) (drawbridge.ServerID, bool) {
	if o := s.owner(sk.uri); o != nil && o.ID != id {
		return o.ID, true
	}
	if other, ok := inside.other(sk.space(), id); ok {
		return other, true
	}
	return s.view.below().other(sk.space(), id)
}

// A presence says which servers have something at a URI or below it: the first two, which is enough to know of another.
type presence map[string][2]drawbridge.ServerID

func (c presence) add(uri string, server drawbridge.ServerID) {
	for at := range up(uri) {
		switch both := c[at]; {
		case both[0] == server || both[1] == server || both[1] != "":
		case both[0] == "":
			c[at] = [2]drawbridge.ServerID{server}
		default:
			c[at] = [2]drawbridge.ServerID{both[0], server}
		}
	}
}

// other gives a server other than this one that has something there.
func (c presence) other(uri string, than drawbridge.ServerID) (drawbridge.ServerID, bool) {
	for _, server := range c[uri] {
		if server != "" && server != than {
			return server, true
		}
	}
	return "", false
}

// resourcesBelow says whose resources are listed at a URI or below it.
func (v *view) resourcesBelow() presence {
	out := presence{}
	for _, items := range [][]*item{v.resources.items, v.resources.claimed} {
		for _, it := range items {
			if name := string(it.spec.Name); strings.Count(name, "/") <= maxDepth {
				out.add(name, it.spec.Server)
			}
		}
	}
	return out
}

// skillsets keep what servers said of their skills, and what was put together of it.
type skillsets struct {
	mu   sync.Mutex
	kept map[catalogueKey]*catalogue
	// sets are by principal and the servers that are in them.
	sets map[string]*skillset
	// last has, by server, the clashes of the set that was made last, and what of the server's is not in it.
	last map[drawbridge.ServerID]skillNotes
}

type catalogueKey struct {
	principal string
	server    drawbridge.ServerID
}

type skillNotes struct {
	clashes []Clash
	leftOut []LeftOut
}

// A skillClash is a clash with the server that lost.
type skillClash struct {
	server drawbridge.ServerID
	Clash
}

// maxCatalogues and maxSkillsets bound what is kept; maxFound bounds the skills kept of a server that it does not list.
const (
	maxCatalogues = 256
	maxSkillsets  = 64
	maxFound      = 1024
)

// get gives what the member said to the principal, if it is about the member as it is configured; nil for nothing.
func (s *skillsets) get(principal string, m *member) *catalogue {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.kept[catalogueKey{principal, m.ID}]
	if c == nil || c.member.Row != m.Row {
		return nil
	}
	return c
}

func (s *skillsets) put(principal string, c *catalogue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := catalogueKey{principal, c.member.ID}
	if s.kept == nil || len(s.kept) >= maxCatalogues && s.kept[key] == nil {
		s.kept = map[catalogueKey]*catalogue{}
	}
	s.kept[key] = c
}

// found notes a skill that a server has and does not list.
func (s *skillsets) found(principal string, m *member, sk skill) {
	sk.raw = nil
	c := s.get(principal, m)
	if c == nil {
		return // it was never asked for its list, or it was forgotten meanwhile: it is asked again
	}
	next := *c
	if len(next.found) >= maxFound {
		next.found = nil
	}
	next.found = append(slices.Clip(next.found), sk)
	s.put(principal, &next)
}

// together puts catalogues together, or gives what was put together before where nothing changed. A set with the same
// items as the one before has its version. It gives the first clash of each two servers that was not there before.
func (s *skillsets) together(principal string, v *view, catalogues []*catalogue, style Naming, next func() uint64) (*skillset, []skillClash) {
	key := principal
	for _, c := range catalogues {
		key += "\x00" + string(c.member.ID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.sets[key]
	if old != nil && old.view == v && slices.Equal(old.catalogues, catalogues) {
		return old, nil
	}
	set := newSkillset(v, catalogues, style)
	if old != nil && slices.EqualFunc(old.items, set.items, sameBytes) {
		set.version = old.version
	} else {
		set.version = next()
	}
	if s.sets == nil || len(s.sets) >= maxSkillsets && old == nil {
		s.sets = map[string]*skillset{}
	}
	s.sets[key] = set
	return set, s.note(set)
}

// note remembers what people are to know of a set. The lock is held.
func (s *skillsets) note(set *skillset) (fresh []skillClash) {
	if s.last == nil {
		s.last = map[drawbridge.ServerID]skillNotes{}
	}
	for _, c := range set.catalogues {
		id := c.member.ID
		warned := map[drawbridge.ServerID]bool{}
		for _, clash := range s.last[id].clashes {
			warned[clash.Winner] = true
		}
		for _, clash := range set.clashes[id] {
			if !warned[clash.Winner] {
				warned[clash.Winner] = true
				fresh = append(fresh, skillClash{id, clash})
			}
		}
		s.last[id] = skillNotes{set.clashes[id], c.leftOut}
	}
	return fresh
}

// notes gives what people are to know of a server's skills.
func (s *skillsets) notes(id drawbridge.ServerID) skillNotes {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[id]
}

// forget drops what is known of a server that is gone.
func (s *skillsets) forget(id drawbridge.ServerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.kept, func(key catalogueKey, _ *catalogue) bool { return key.server == id })
	clear(s.sets)
	delete(s.last, id)
}
