package naming

import (
	"container/list"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// Bounds of what is remembered of links. A URI of more bytes is not remembered.
const (
	maxLinksPerPrincipal = 1024
	maxLinksTotal        = 16 << 10
	maxLinkBytes         = 2 << 10
)

// LinkOwners remember which server gave a principal a link: servers need not list what they link to, so that nothing
// else tells whose such a URI is. The first server that gave it has it. The least recently given make room: of a
// principal with 1,024 links their own, and of 16,384 in all anybody's. The zero value remembers nothing. Its methods
// may be called from several goroutines.
type LinkOwners struct {
	mu sync.Mutex
	// oldestFirst has every link and of those of each principal, both with the least recently given first.
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
	// inAll and inOwn are its places in the lists.
	inAll, inOwn *list.Element
}

// Remember remembers that a server gave a principal a link, and says whose the URI is from then on: the server's, or
// that of another which gave it earlier. What is too long to be remembered is the server's.
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

// Owner gives the server that gave a principal this link; false where none is remembered.
func (l *LinkOwners) Owner(principal, uri string) (drawbridge.ServerID, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own := l.byPrincipal[principal]; own != nil && own.byURI[uri] != nil {
		return own.byURI[uri].server, true
	}
	return "", false
}

// ForgetServer drops the links of a server that is gone.
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
