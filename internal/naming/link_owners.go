package naming

import (
	"container/list"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// Limits for remembered links. A longer URI is not remembered.
const (
	maxLinksPerPrincipal = 1024
	maxLinksTotal        = 16 << 10
	maxLinkBytes         = 2 << 10
)

// LinkOwners remembers which server sent a principal a link. Servers need not list the resources that they link to, so
// nothing else tells whose such a URI is. The first server that sent a URI owns it.
//
// It keeps 1,024 links of a principal and 16,384 in all, and evicts the least recently sent. The zero value is empty,
// and it is safe for concurrent use.
type LinkOwners struct {
	mu sync.Mutex
	// oldestFirst lists the links, the least recently sent first: of all principals here, and of each one in
	// byPrincipal.
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
	// inAll and inOwn are its elements in the lists.
	inAll, inOwn *list.Element
}

// Remember remembers that a server sent a principal a link and returns the owner of the URI: the server, or one that
// sent it earlier. A URI that is too long to be remembered is the server's.
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

// Owner returns the server that sent a principal this link; false if none is remembered.
func (l *LinkOwners) Owner(principal, uri string) (drawbridge.ServerID, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own := l.byPrincipal[principal]; own != nil && own.byURI[uri] != nil {
		return own.byURI[uri].server, true
	}
	return "", false
}

// ForgetServer drops the links of a removed server.
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

// remove forgets a link. The lock is held.
func (l *LinkOwners) remove(known *ownedLink) {
	own := l.byPrincipal[known.principal]
	l.oldestFirst.Remove(known.inAll)
	own.order.Remove(known.inOwn)
	if delete(own.byURI, known.uri); len(own.byURI) == 0 {
		delete(l.byPrincipal, known.principal)
	}
}
