// Package skill puts the skills of several servers together (extension io.modelcontextprotocol/skills, SEP-2640): it reads
// what they list, says which of them has which space of URIs, and keeps for each principal what a server said last.
//
// A skill is a space of URIs: all below the directory of its SKILL.md. A space belongs to the first server, in
// configuration order, that has a skill there, unless a server lists a resource in it: then it is that server's. Another
// server's skill there has its server in every URI of its entry; names, digests and all else of it stay as they are, for a
// host compares them with what it reads. Where names are bare the later skill is not listed.
//
// The package asks nobody: who has skills, and what they say, it is told. What servers say is untrusted, and bounded.
package skill

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck/label"
)

// A Set is the skills of several servers, put together for one principal. It is not changed after it was made.
type Set struct {
	// Items are the entries as callers see them. Version tells sets apart: those of one Kept with the same version have the
	// same items.
	Items   []json.RawMessage
	Version uint64

	ground     *Ground
	catalogues []*Catalogue
	// owners has the servers by the spaces that are theirs.
	owners  map[string]drawbridge.ServerID
	clashes map[drawbridge.ServerID][]Clash
}

// A Clash is a skill in a space that another server has.
type Clash struct {
	// URI is the skill's own, Listed what it is listed by; empty where it is not listed.
	URI, Listed string
	// Winner has the space.
	Winner drawbridge.ServerID
}

// Owner gives the server in whose space the URI lies; empty where it lies in none.
func (s *Set) Owner(uri string) drawbridge.ServerID {
	if strings.Count(uri, "/") > maxDepth {
		return ""
	}
	for space := range up(uri) {
		if id := s.owners[space]; id != "" {
			return id
		}
	}
	return ""
}

// Hints are what the servers allow at that moment, one for each.
func (s *Set) Hints(now time.Time) []drawbridge.Hint {
	out := make([]drawbridge.Hint, 0, len(s.catalogues))
	for _, c := range s.catalogues {
		out = append(out, c.hintAt(now))
	}
	return out
}

// newSet puts the catalogues together, in configuration order.
func newSet(ground *Ground, catalogues []*Catalogue, naming label.Naming) *Set {
	s := &Set{ground: ground, catalogues: catalogues, owners: map[string]drawbridge.ServerID{}, clashes: map[drawbridge.ServerID][]Clash{}}
	inside := presence{} // who has skills at or below a URI
	for _, c := range catalogues {
		id := c.server.ID
		for i, sk := range slices.Concat(c.skills, c.found) {
			listed := i < len(c.skills)
			_, _, named := label.CutServer(sk.URI)
			named = named && naming != label.Bare // it looks like another server's, and is never listed as it is
			winner, clash := s.winner(sk, id, inside)
			switch {
			case !clash && !named:
				s.owners[sk.space()] = id
				inside.add(sk.space(), id)
				if listed {
					s.Items = append(s.Items, sk.raw)
				}
				continue
			case !listed:
				continue
			}
			lost := Clash{URI: sk.URI, Winner: winner}
			if naming != label.Bare {
				s.Items = append(s.Items, sk.qualified(id))
				lost.Listed = label.InAuthority(id, sk.URI)
			}
			if clash {
				s.clashes[id] = append(s.clashes[id], lost)
			}
		}
	}
	return s
}

// winner says whether something of the skill's space is another server's already, and whose.
func (s *Set) winner(sk Entry, id drawbridge.ServerID, inside presence) (drawbridge.ServerID, bool) {
	if o := s.Owner(sk.URI); o != "" && o != id {
		return o, true
	}
	if other, ok := inside.other(sk.space(), id); ok {
		return other, true
	}
	return s.ground.below().other(sk.space(), id)
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

// A Ground says whose resources are listed where: a skill in whose directory another server has one is not told from it by
// its URIs. Grounds are compared by their address.
type Ground struct{ below func() presence }

// NewGround makes a ground of the resources that each gives. It is asked once, when the ground is first needed.
func NewGround(each func(add func(uri string, server drawbridge.ServerID))) *Ground {
	return &Ground{sync.OnceValue(func() presence {
		out := presence{}
		each(func(uri string, server drawbridge.ServerID) {
			if strings.Count(uri, "/") <= maxDepth {
				out.add(uri, server)
			}
		})
		return out
	})}
}
