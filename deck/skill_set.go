package deck

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
)

// A skillSet is the combined skills of several servers for one principal. It is immutable.
//
// Each skill has a space of URIs: all URIs below the directory of its SKILL.md. The space belongs to the first server
// in configuration order that has a skill there. If a server lists a resource in the space, the space belongs to that
// server instead. If another server has a skill in the space, the entry of that skill is listed with changed URIs: the
// name of the skill's server is added. Names, digests and all other members stay unchanged, since a host compares them
// with the files that it reads. With the naming style naming.Bare, server names are never added, and such a skill is
// not listed.
type skillSet struct {
	// items are the skills' entries as callers see them. Two sets of one skillCache with the same version have the same
	// items.
	items   []json.RawMessage
	version uint64

	resourceTree *resourceTree
	servers      []*serverSkills
	// owners contains the server that owns each space, by the URI of the space.
	owners  map[string]drawbridge.ServerID
	clashes map[drawbridge.ServerID][]skillClash
}

// A skillClash describes a skill in a space that another server owns.
type skillClash struct {
	// uri is the skill's own URI. listed is its public URI; empty if the skill is not listed.
	uri, listed string
	// winner is the server that owns the space.
	winner drawbridge.ServerID
}

// owner returns the server that owns the space of a URI, or "" if there is none.
func (s *skillSet) owner(uri string) drawbridge.ServerID {
	if strings.Count(uri, "/") > maxURIDepth {
		return ""
	}
	for space := range parentURIs(uri) {
		if id := s.owners[space]; id != "" {
			return id
		}
	}
	return ""
}

// cacheHints returns the servers' current cache hints.
func (s *skillSet) cacheHints(now time.Time) []drawbridge.CacheHint {
	out := make([]drawbridge.CacheHint, 0, len(s.servers))
	for _, c := range s.servers {
		out = append(out, c.remainingHint(now))
	}
	return out
}

// newSkillSet combines the answers of servers into a set. catalogues are the answers in the order of the servers in the
// configuration.
func newSkillSet(ground *resourceTree, catalogues []*serverSkills, namesLocal naming.Style) *skillSet {
	s := &skillSet{resourceTree: ground, servers: catalogues, owners: map[string]drawbridge.ServerID{},
		clashes: map[drawbridge.ServerID][]skillClash{}}
	inside := uriServers{} // the servers with skills at or below a URI
	for _, c := range catalogues {
		id := c.server.id
		for i, sk := range slices.Concat(c.skills, c.unlisted) {
			listed := i < len(c.skills)
			_, _, named := naming.CutServer(sk.uri)
			named = named && namesLocal != naming.Bare // a URI that looks qualified is never listed unchanged
			winner, clash := s.otherSpaceOwner(sk, id, inside)
			switch {
			case !clash && !named:
				s.owners[sk.uriSpace()] = id
				inside.add(sk.uriSpace(), id)
				if listed {
					s.items = append(s.items, sk.raw)
				}
				continue
			case !listed:
				continue
			}
			lost := skillClash{uri: sk.uri, winner: winner}
			if namesLocal != naming.Bare {
				s.items = append(s.items, sk.withServerURIs(id))
				lost.listed = naming.AddServerAuthority(id, sk.uri)
			}
			if clash {
				s.clashes[id] = append(s.clashes[id], lost)
			}
		}
	}
	return s
}

// otherSpaceOwner returns a server other than id whose skills or resources are in the space of sk, or whose space
// contains sk. It returns false if there is no such server.
func (s *skillSet) otherSpaceOwner(sk skillEntry, id drawbridge.ServerID,
	inside uriServers) (drawbridge.ServerID, bool) {
	if o := s.owner(sk.uri); o != "" && o != id {
		return o, true
	}
	if other, ok := inside.otherServer(sk.uriSpace(), id); ok {
		return other, true
	}
	return s.resourceTree.serversBelow().otherServer(sk.uriSpace(), id)
}

// uriServers contains, for a URI, the servers with an item at or below the URI. It stores at most two servers for each
// URI, which is enough for otherServer.
type uriServers map[string][2]drawbridge.ServerID

func (c uriServers) add(uri string, server drawbridge.ServerID) {
	for at := range parentURIs(uri) {
		switch both := c[at]; {
		case both[0] == server || both[1] == server || both[1] != "":
		case both[0] == "":
			c[at] = [2]drawbridge.ServerID{server}
		default:
			c[at] = [2]drawbridge.ServerID{both[0], server}
		}
	}
}

// otherServer returns a server, other than the given one, with an item at or below a URI.
func (c uriServers) otherServer(uri string, than drawbridge.ServerID) (drawbridge.ServerID, bool) {
	for _, server := range c[uri] {
		if server != "" && server != than {
			return server, true
		}
	}
	return "", false
}

// A resourceTree contains the servers that list resources, by the URIs of the resources. A skill's URIs are ambiguous
// if another server lists a resource in the skill's directory. Trees are compared by pointer: a new pointer means that
// resources have changed.
type resourceTree struct{ serversBelow func() uriServers }

// newResourceTree returns a tree of resources. The function each must call add for each resource. It is called once,
// when the tree is first used.
func newResourceTree(each func(add func(uri string, server drawbridge.ServerID))) *resourceTree {
	return &resourceTree{sync.OnceValue(func() uriServers {
		out := uriServers{}
		each(func(uri string, server drawbridge.ServerID) {
			if strings.Count(uri, "/") <= maxURIDepth {
				out.add(uri, server)
			}
		})
		return out
	})}
}
