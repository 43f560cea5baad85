// Package skills puts the skills of several servers together (extension io.modelcontextprotocol/skills, SEP-2640): it
// reads what they list, says which of them has which space of URIs, and keeps for each principal what a server said
// last.
//
// A skill is a space of URIs: all below the directory of its SKILL.md. A space belongs to the first server, in
// configuration order, that has a skill there, unless a server lists a resource in it: then it is that server's.
// Another server's skill there has its server in every URI of its entry; names, digests and all else of it stay as
// they are, for a host compares them with what it reads. Where names are bare the later skill is not listed.
//
// The package asks nobody: who has skills, and what they say, it is told. What servers say is untrusted, and bounded.
package skills

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
)

// A Set is the skills of several servers, put together for one principal. It is not changed after it was made.
type Set struct {
	// Items are the entries as callers see them. Version tells sets apart: those of one Kept with the same version
	// have the same items.
	Items   []json.RawMessage
	Version uint64

	resourceTree *ResourceTree
	servers      []*ServerSkills
	// owners has the servers by the spaces that are theirs.
	owners  map[string]drawbridge.ServerID
	clashes map[drawbridge.ServerID][]SpaceClash
}

// A SpaceClash is a skill in a space that another server has.
type SpaceClash struct {
	// URI is the skill's own, Listed what it is listed by; empty where it is not listed.
	URI, Listed string
	// Winner has the space.
	Winner drawbridge.ServerID
}

// Owner gives the server in whose space the URI lies; empty where it lies in none.
func (s *Set) Owner(uri string) drawbridge.ServerID {
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

// CacheHints are what the servers allow at that moment, one for each.
func (s *Set) CacheHints(now time.Time) []drawbridge.CacheHint {
	out := make([]drawbridge.CacheHint, 0, len(s.servers))
	for _, c := range s.servers {
		out = append(out, c.remainingHint(now))
	}
	return out
}

// newSet puts the catalogues together, in configuration order.
func newSet(ground *ResourceTree, catalogues []*ServerSkills, namesLocal naming.Style) *Set {
	s := &Set{resourceTree: ground, servers: catalogues, owners: map[string]drawbridge.ServerID{},
		clashes: map[drawbridge.ServerID][]SpaceClash{}}
	inside := uriServers{} // who has skills at or below a URI
	for _, c := range catalogues {
		id := c.server.ID
		for i, sk := range slices.Concat(c.skills, c.unlisted) {
			listed := i < len(c.skills)
			_, _, named := naming.CutServer(sk.URI)
			named = named && namesLocal != naming.Bare // it looks like another server's, and is never listed as it is
			winner, clash := s.otherSpaceOwner(sk, id, inside)
			switch {
			case !clash && !named:
				s.owners[sk.uriSpace()] = id
				inside.add(sk.uriSpace(), id)
				if listed {
					s.Items = append(s.Items, sk.raw)
				}
				continue
			case !listed:
				continue
			}
			lost := SpaceClash{URI: sk.URI, Winner: winner}
			if namesLocal != naming.Bare {
				s.Items = append(s.Items, sk.withServerURIs(id))
				lost.Listed = naming.AddServerAuthority(id, sk.URI)
			}
			if clash {
				s.clashes[id] = append(s.clashes[id], lost)
			}
		}
	}
	return s
}

// otherSpaceOwner says whether something of the skill's space is another server's already, and whose.
func (s *Set) otherSpaceOwner(sk Skill, id drawbridge.ServerID, inside uriServers) (drawbridge.ServerID, bool) {
	if o := s.Owner(sk.URI); o != "" && o != id {
		return o, true
	}
	if other, ok := inside.otherServer(sk.uriSpace(), id); ok {
		return other, true
	}
	return s.resourceTree.serversBelow().otherServer(sk.uriSpace(), id)
}

// A uriServers says which servers have something at a URI or below it: the first two, which is enough to know of
// another.
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

// otherServer gives a server other than this one that has something there.
func (c uriServers) otherServer(uri string, than drawbridge.ServerID) (drawbridge.ServerID, bool) {
	for _, server := range c[uri] {
		if server != "" && server != than {
			return server, true
		}
	}
	return "", false
}

// A ResourceTree says whose resources are listed where: a skill in whose directory another server has one is not told
// from it by its MapURIs. Grounds are compared by their address.
type ResourceTree struct{ serversBelow func() uriServers }

// NewResourceTree makes a ground of the resources that each gives. It is asked once, when the ground is first needed.
func NewResourceTree(each func(add func(uri string, server drawbridge.ServerID))) *ResourceTree {
	return &ResourceTree{sync.OnceValue(func() uriServers {
		out := uriServers{}
		each(func(uri string, server drawbridge.ServerID) {
			if strings.Count(uri, "/") <= maxURIDepth {
				out.add(uri, server)
			}
		})
		return out
	})}
}
