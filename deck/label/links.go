package label

import (
	"container/list"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// Bounds of what is remembered of links. A URI of more bytes is not remembered.
const (
	maxLinks    = 1024
	maxLinksAll = 16 << 10
	maxLink     = 2 << 10
)

// Links remember which server gave a principal a link: servers need not list what they link to, so that nothing else tells
// whose such a URI is. The first server that gave it has it. The least recently given make room: of a principal with 1,024
// links their own, and of 16,384 in all anybody's. The zero value remembers nothing. Its methods may be called from several
// goroutines.
type Links struct {
	mu sync.Mutex
	// all has every link and of those of each principal, both with the least recently given first.
	all list.List
	of  map[string]*linkList
}

type linkList struct {
	order list.List
	byURI map[string]*link
}

type link struct {
	principal, uri string
	server         drawbridge.ServerID
	// inAll and inOwn are its places in the lists.
	inAll, inOwn *list.Element
}

// Give remembers that a server gave a principal a link, and says whose the URI is from then on: the server's, or that of
// another which gave it earlier. What is too long to be remembered is the server's.
func (l *Links) Give(principal string, server drawbridge.ServerID, uri string) drawbridge.ServerID {
	if len(uri) > maxLink {
		return server
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if own := l.of[principal]; own != nil && own.byURI[uri] != nil {
		known := own.byURI[uri]
		if known.server == server {
			l.all.MoveToBack(known.inAll)
			own.order.MoveToBack(known.inOwn)
		}
		return known.server
	}
	if own := l.of[principal]; own != nil && len(own.byURI) >= maxLinks {
		l.drop(own.order.Front().Value.(*link))
	} else if l.all.Len() >= maxLinksAll {
		l.drop(l.all.Front().Value.(*link))
	}
	own := l.of[principal]
	if own == nil {
		own = &linkList{byURI: map[string]*link{}}
		if l.of == nil {
			l.of = map[string]*linkList{}
		}
		l.of[principal] = own
	}
	added := &link{principal: principal, uri: uri, server: server}
	added.inAll, added.inOwn = l.all.PushBack(added), own.order.PushBack(added)
	own.byURI[uri] = added
	return server
}

// Owner gives the server that gave a principal this link; false where none is remembered.
func (l *Links) Owner(principal, uri string) (drawbridge.ServerID, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own := l.of[principal]; own != nil && own.byURI[uri] != nil {
		return own.byURI[uri].server, true
	}
	return "", false
}

// Forget drops the links of a server that is gone.
func (l *Links) Forget(server drawbridge.ServerID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e := l.all.Front(); e != nil; {
		next := e.Next()
		if known := e.Value.(*link); known.server == server {
			l.drop(known)
		}
		e = next
	}
}

// drop forgets a link. The lock is held.
func (l *Links) drop(known *link) {
	own := l.of[known.principal]
	l.all.Remove(known.inAll)
	own.order.Remove(known.inOwn)
	if delete(own.byURI, known.uri); len(own.byURI) == 0 {
		delete(l.of, known.principal)
	}
}
