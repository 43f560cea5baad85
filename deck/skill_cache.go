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

// A skillCache stores each server's last answer about its skills for each principal, and the sets combined from these
// answers. Use [newSkillCache]. It is safe for concurrent use.
type skillCache struct {
	mu       sync.Mutex
	byServer *simplelru.LRU[skillCacheKey, *serverSkills]
	// sets contains the combined sets. The key consists of the principal and the servers.
	sets *simplelru.LRU[string, *skillSet]
	// problems contains the problems of each server's skills in the set that was combined last.
	problems map[drawbridge.ServerID]skillProblems
}

type skillCacheKey struct {
	principal string
	server    drawbridge.ServerID
}

// newSkillCache returns an empty cache.
func newSkillCache() *skillCache {
	byServer, _ := simplelru.NewLRU[skillCacheKey, *serverSkills](maxServerSkills, nil) // an error means a size below 1
	sets, _ := simplelru.NewLRU[string, *skillSet](maxSkillSets, nil)
	return &skillCache{byServer: byServer, sets: sets, problems: map[drawbridge.ServerID]skillProblems{}}
}

// skillProblems are the skills of a server that are not listed as the server lists them: skills in the URI space of
// another server, and omitted skills. They are shown to people.
type skillProblems struct {
	clashes []skillClash
	omitted []omittedSkill
}

// A serverSkillClash is a skillClash, together with the server of the skill.
type serverSkillClash struct {
	server drawbridge.ServerID
	skillClash
}

// maxServerSkills and maxSkillSets are the maximum numbers of cached answers and sets. maxUnlistedSkills is the maximum
// number of unlisted skills cached for a server; at the limit, all of them are removed.
const (
	maxServerSkills   = 256
	maxSkillSets      = 64
	maxUnlistedSkills = 1024
)

// get returns the stored answer of the server for the principal. It returns nil if there is none, or if the
// configuration of the server has changed since the answer.
func (s *skillCache) get(principal string, server skillServer) *serverSkills {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.byServer.Get(skillCacheKey{principal, server.id})
	if !ok || c.server.row != server.row {
		return nil
	}
	return c
}

// put stores c, a server's answer for the principal, in place of the stored answer.
func (s *skillCache) put(principal string, c *serverSkills) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byServer.Add(skillCacheKey{principal, c.server.id}, c)
}

// addUnlisted adds a skill that the server has but does not list to the stored answer. Without a stored answer, it does
// nothing.
func (s *skillCache) addUnlisted(principal string, server skillServer, sk skillEntry) {
	sk.raw = nil
	c := s.get(principal, server)
	if c == nil {
		return // without a stored answer, the server is asked again
	}
	next := *c
	if len(next.unlisted) >= maxUnlistedSkills {
		next.unlisted = nil
	}
	next.unlisted = append(slices.Clip(next.unlisted), sk)
	s.put(principal, &next)
}

// combine combines the servers' answers into a set. If nothing has changed, it returns the previous set. A new set with
// the same items has the version of the previous set; otherwise next returns a new version. ground contains the listed
// resources. The returned clashes are those between servers that had no clash before.
func (s *skillCache) combine(principal string, ground *resourceTree, catalogues []*serverSkills, naming naming.Style,
	next func() uint64) (*skillSet, []serverSkillClash) {
	key := principal
	for _, c := range catalogues {
		key += "\x00" + string(c.server.id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old, _ := s.sets.Get(key)
	if old != nil && old.resourceTree == ground && slices.Equal(old.servers, catalogues) {
		return old, nil
	}
	set := newSkillSet(ground, catalogues, naming)
	if old != nil && slices.EqualFunc(old.items, set.items,
		func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
		set.version = old.version
	} else {
		set.version = next()
	}
	s.sets.Add(key, set)
	return set, s.rememberProblems(set)
}

// rememberProblems stores the problems of a set. It returns the clashes between two servers that had no clash before,
// one for each pair. The caller holds the lock.
func (s *skillCache) rememberProblems(set *skillSet) (fresh []serverSkillClash) {
	for _, c := range set.servers {
		id := c.server.id
		warned := map[drawbridge.ServerID]bool{}
		for _, clash := range s.problems[id].clashes {
			warned[clash.winner] = true
		}
		for _, clash := range set.clashes[id] {
			if !warned[clash.winner] {
				warned[clash.winner] = true
				fresh = append(fresh, serverSkillClash{id, clash})
			}
		}
		s.problems[id] = skillProblems{set.clashes[id], c.leftOut}
	}
	return fresh
}

// problemsOf returns the problems of a server's skills in the last set.
func (s *skillCache) problemsOf(id drawbridge.ServerID) skillProblems {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problems[id]
}

// forgetServer deletes everything that is stored about a removed server.
func (s *skillCache) forgetServer(id drawbridge.ServerID) {
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
