package naming

import (
	"container/list"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// Limits for the number of stored links, and for the length of a URI in bytes. A longer URI is not stored.
const (
	maxLinksPerPrincipal = 1024
	maxLinksTotal        = 16 << 10
	maxLinkBytes         = 2 << 10
)

// LinkOwners stores, for each principal, which server sent a link to which resource URI. A server may link to resources
// that it does not list. For such a URI, only the link shows which server can read it. The first server that sent a URI
// to a principal owns the URI for this principal.
//
// LinkOwners stores up to 1,024 links for each principal and 16,384 in total. If a limit is reached, it evicts the
// least recently sent link of the principal or of all principals. The zero value is empty and ready to use. A
// LinkOwners is safe for concurrent use.
type LinkOwners struct {
	mu sync.Mutex
	// oldestFirst lists the links of all principals, the least recently sent first. principalLinks.order is such a list
	// for one principal.
	oldestFirst list.List
	byPrincipal map[string]*principalLinks
}

type principalLinks struct {
	order list.List
	byURI map[string]*ownedLink
}

type ownedLink struct {
	principal, uri string
	server         drawbridge.ServerID
	// inAll is the link's element in oldestFirst; inOwn is its element in the principal's list.
	inAll, inOwn *list.Element
}

// Remember stores that a server sent a link to a principal, and returns the owner of the URI. The owner is the first
// server that sent the URI to this principal. If the URI is too long to be stored, the owner is server.
func (l *LinkOwners) Remember(principal string, server drawbridge.ServerID, uri string) drawbridge.ServerID {
	if len(uri) > maxLinkBytes {
		return server
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if own := l.byPrincipal[principal]; own != nil && own.byURI[uri] != nil {
		known := own.byURI[uri]
		if known.server == server {
			l.oldestFirst.MoveToBack(known.inAll)
			own.order.MoveToBack(known.inOwn)
		}
		return known.server
	}
	if own := l.byPrincipal[principal]; own != nil && len(own.byURI) >= maxLinksPerPrincipal {
		l.remove(own.order.Front().Value.(*ownedLink))
	} else if l.oldestFirst.Len() >= maxLinksTotal {
		l.remove(l.oldestFirst.Front().Value.(*ownedLink))
	}
	own := l.byPrincipal[principal]
	if own == nil {
		own = &principalLinks{byURI: map[string]*ownedLink{}}
		if l.byPrincipal == nil {
			l.byPrincipal = map[string]*principalLinks{}
		}
		l.byPrincipal[principal] = own
	}
	added := &ownedLink{principal: principal, uri: uri, server: server}
	added.inAll, added.inOwn = l.oldestFirst.PushBack(added), own.order.PushBack(added)
	own.byURI[uri] = added
	return server
}

// Owner returns the server that owns a link that was sent to a principal; false if no such link is stored.
func (l *LinkOwners) Owner(principal, uri string) (drawbridge.ServerID, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own := l.byPrincipal[principal]; own != nil && own.byURI[uri] != nil {
		return own.byURI[uri].server, true
	}
	return "", false
}

// ForgetServer removes all links of a server.
func (l *LinkOwners) ForgetServer(server drawbridge.ServerID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e := l.oldestFirst.Front(); e != nil; {
		next := e.Next()
		if known := e.Value.(*ownedLink); known.server == server {
			l.remove(known)
		}
		e = next
	}
}

// remove removes a link. The caller holds l.mu.
func (l *LinkOwners) remove(known *ownedLink) {
	own := l.byPrincipal[known.principal]
	l.oldestFirst.Remove(known.inAll)
	own.order.Remove(known.inOwn)
	if delete(own.byURI, known.uri); len(own.byURI) == 0 {
		delete(l.byPrincipal, known.principal)
	}
}
