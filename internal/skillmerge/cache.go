package skillmerge

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
)

// A Cache stores each server's last answer about its skills for each principal, and the sets combined from these
// answers. Use [NewCache]. It is safe for concurrent use.
type Cache struct {
	mu       sync.Mutex
	byServer *simplelru.LRU[cacheKey, *ServerSkills]
	// sets contains the combined sets. The key consists of the principal and the servers.
	sets *simplelru.LRU[string, *Set]
	// problems contains the problems of each server's skills in the set that was combined last.
	problems map[drawbridge.ServerID]Problems
}

type cacheKey struct {
	principal string
	server    drawbridge.ServerID
}

// NewCache returns an empty cache.
func NewCache() *Cache {
	byServer, _ := simplelru.NewLRU[cacheKey, *ServerSkills](maxCatalogues, nil) // an error means a size below 1
	sets, _ := simplelru.NewLRU[string, *Set](maxSets, nil)
	return &Cache{byServer: byServer, sets: sets, problems: map[drawbridge.ServerID]Problems{}}
}

// Problems are the skills of a server that are not listed as the server lists them: skills in the URI space of another
// server, and omitted skills. They are shown to people.
type Problems struct {
	Clashes []SpaceClash
	Omitted []OmittedSkill
}

// A ServerClash is a SpaceClash, together with the server of the skill.
type ServerClash struct {
	Server drawbridge.ServerID
	SpaceClash
}

// maxCatalogues and maxSets are the maximum numbers of cached answers and sets. maxFound is the maximum number of
// unlisted skills cached for a server; at the limit, all of them are removed.
const (
	maxCatalogues = 256
	maxSets       = 64
	maxFound      = 1024
)

// Get returns the stored answer of the server for the principal. It returns nil if there is none, or if the
// configuration of the server has changed since the answer.
func (s *Cache) Get(principal string, server Server) *ServerSkills {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.byServer.Get(cacheKey{principal, server.ID})
	if !ok || c.server.Row != server.Row {
		return nil
	}
	return c
}

// Put stores c, a server's answer for the principal, in place of the stored answer.
func (s *Cache) Put(principal string, c *ServerSkills) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byServer.Add(cacheKey{principal, c.server.ID}, c)
}

// AddUnlisted adds a skill that the server has but does not list to the stored answer. Without a stored answer, it does
// nothing.
func (s *Cache) AddUnlisted(principal string, server Server, sk Skill) {
	sk.raw = nil
	c := s.Get(principal, server)
	if c == nil {
		return // without a stored answer, the server is asked again
	}
	next := *c
	if len(next.unlisted) >= maxFound {
		next.unlisted = nil
	}
	next.unlisted = append(slices.Clip(next.unlisted), sk)
	s.Put(principal, &next)
}

// Combine combines the servers' answers into a set. If nothing has changed, it returns the previous set. A new set with
// the same items has the version of the previous set; otherwise next returns a new version. ground contains the listed
// resources. The returned clashes are those between servers that had no clash before.
func (s *Cache) Combine(principal string, ground *ResourceTree, catalogues []*ServerSkills, naming naming.Style,
	next func() uint64) (*Set, []ServerClash) {
	key := principal
	for _, c := range catalogues {
		key += "\x00" + string(c.server.ID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old, _ := s.sets.Get(key)
	if old != nil && old.resourceTree == ground && slices.Equal(old.servers, catalogues) {
		return old, nil
	}
	set := newSet(ground, catalogues, naming)
	if old != nil && slices.EqualFunc(old.Items, set.Items,
		func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
		set.Version = old.Version
	} else {
		set.Version = next()
	}
	s.sets.Add(key, set)
	return set, s.rememberProblems(set)
}

// rememberProblems stores the problems of a set. It returns the clashes between two servers that had no clash before,
// one for each pair. The caller holds the lock.
func (s *Cache) rememberProblems(set *Set) (fresh []ServerClash) {
	for _, c := range set.servers {
		id := c.server.ID
		warned := map[drawbridge.ServerID]bool{}
		for _, clash := range s.problems[id].Clashes {
			warned[clash.Winner] = true
		}
		for _, clash := range set.clashes[id] {
			if !warned[clash.Winner] {
				warned[clash.Winner] = true
				fresh = append(fresh, ServerClash{id, clash})
			}
		}
		s.problems[id] = Problems{set.clashes[id], c.leftOut}
	}
	return fresh
}

// Problems returns the problems of a server's skills in the last set.
func (s *Cache) Problems(id drawbridge.ServerID) Problems {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problems[id]
}

// ForgetServer deletes everything that is stored about a removed server.
func (s *Cache) ForgetServer(id drawbridge.ServerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.byServer.Keys() {
		if key.server == id {
			s.byServer.Remove(key)
		}
	}
	s.sets.Purge()
	delete(s.problems, id)
}
