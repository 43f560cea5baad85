// Package vigil keeps count of who watches what of which server, and says what callers are told of that.
//
// It promises that a server is told of a thing when the first caller watches it, and when the last one has gone; and that
// who tells a server what is watched does so alone, so that the last word said is the last word meant.
package vigil

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// Vigils count which resources and tasks callers subscribed to, so that a server hears of each once. The zero value is ready.
type Vigils struct {
	mu sync.Mutex
	// held has each caller's subscriptions; counts how many of them there are, by server, what it is to the server, and
	// the name by which callers know it.
	held   map[Subscription]*hold
	of     map[who]map[Subscription]bool // the same, by whose they are
	counts map[drawbridge.ServerID]map[Watched]map[string]int
	// turns has a one-place channel a server: who holds it may tell the server what is watched, so that the last word
	// said is the last word meant.
	turns map[drawbridge.ServerID]chan struct{}
}

// A Topic says what is watched.
type Topic uint8

// The topics: the URI of a resource, the id of a task.
const (
	URI Topic = iota
	Task
)

// Watched is a resource or a task as its server knows it.
type Watched struct {
	Topic Topic
	Own   string
}

// A Subscription is one caller's to one URI or task, as the caller knows it.
type Subscription struct {
	Principal, Session string
	Topic              Topic
	Public             string
}

// Who has subscriptions: a session, or all callers of a principal without one.
type who struct{ principal, session string }

func (s Subscription) who() who { return who{s.Principal, s.Session} }

// A hold is what a subscription stands for. A session holds a thing once; callers without one are counted.
type hold struct {
	server drawbridge.ServerID
	own    string
	times  int
}

// Turn waits until the caller may tell the server what is watched.
func (w *Vigils) Turn(ctx context.Context, server drawbridge.ServerID) (done func(), err error) {
	w.mu.Lock()
	if w.turns == nil {
		w.turns = map[drawbridge.ServerID]chan struct{}{}
	}
	turn := w.turns[server]
	if turn == nil {
		turn = make(chan struct{}, 1)
		w.turns[server] = turn
	}
	w.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Add counts a subscription and says whether the server must be told of a new URI.
func (w *Vigils) Add(sub Subscription, server drawbridge.ServerID, own string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held == nil {
		w.held, w.of = map[Subscription]*hold{}, map[who]map[Subscription]bool{}
		w.counts = map[drawbridge.ServerID]map[Watched]map[string]int{}
	}
	if h := w.held[sub]; h != nil {
		if sub.Session == "" {
			h.times++
		}
		return false
	}
	w.held[sub] = &hold{server, own, 1}
	if w.of[sub.who()] == nil {
		w.of[sub.who()] = map[Subscription]bool{}
	}
	w.of[sub.who()][sub] = true
	all := w.counts[server]
	if all == nil {
		all = map[Watched]map[string]int{}
		w.counts[server] = all
	}
	what := Watched{sub.Topic, own}
	isNew := all[what] == nil
	if isNew {
		all[what] = map[string]int{}
	}
	all[what][sub.Public]++
	return isNew
}

// Remove takes a subscription back and says whether the server must be told that a URI is gone.
func (w *Vigils) Remove(sub Subscription) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.held[sub]
	if h == nil {
		return false
	}
	if h.times--; h.times > 0 {
		return false
	}
	return w.drop(sub, h)
}

// drop forgets a subscription. The lock is held.
func (w *Vigils) drop(sub Subscription, h *hold) bool {
	w.forget(sub)
	what := Watched{sub.Topic, h.own}
	public := w.counts[h.server][what]
	if public[sub.Public]--; public[sub.Public] == 0 {
		delete(public, sub.Public)
	}
	if len(public) > 0 {
		return false
	}
	delete(w.counts[h.server], what)
	return true
}

// forget forgets whose a subscription was. The lock is held.
func (w *Vigils) forget(sub Subscription) {
	delete(w.held, sub)
	if own := w.of[sub.who()]; own != nil {
		if delete(own, sub); len(own) == 0 {
			delete(w.of, sub.who())
		}
	}
}

// EndSession forgets the caller's subscriptions and gives the servers that must be told.
func (w *Vigils) EndSession(caller drawbridge.Caller) []drawbridge.ServerID {
	w.mu.Lock()
	defer w.mu.Unlock()
	tell := map[drawbridge.ServerID]bool{}
	for sub := range w.of[who{caller.Principal, caller.Session}] {
		if h := w.held[sub]; w.drop(sub, h) {
			tell[h.server] = true
		}
	}
	return slices.Sorted(maps.Keys(tell))
}

// Forget drops what is held of a server that is gone.
func (w *Vigils) Forget(server drawbridge.ServerID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for sub, h := range w.held {
		if h.server == server {
			w.forget(sub)
		}
	}
	delete(w.counts, server)
}

func (w *Vigils) ServerOf(sub Subscription) (drawbridge.ServerID, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.held[sub]
	if h == nil {
		return "", false
	}
	return h.server, true
}

// WatchedOf is all that is watched of a server, sorted.
func (w *Vigils) WatchedOf(server drawbridge.ServerID) drawbridge.Watched {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out drawbridge.Watched
	for what := range w.counts[server] {
		if what.Topic == Task {
			out.Tasks = append(out.Tasks, what.Own)
		} else {
			out.URIs = append(out.URIs, what.Own)
		}
	}
	slices.Sort(out.URIs)
	slices.Sort(out.Tasks)
	return out
}

// WatchersOf gives the principals who watch a server's task, by the ids that they watch it by.
func (w *Vigils) WatchersOf(server drawbridge.ServerID, own string) map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.counts[server][Watched{Task, own}] == nil {
		return nil
	}
	out := map[string]string{}
	for sub, h := range w.held {
		if sub.Topic == Task && h.server == server && h.own == own {
			out[sub.Public] = sub.Principal
		}
	}
	return out
}

// PublicOf gives the URIs by which a server's resource is watched, sorted.
func (w *Vigils) PublicOf(server drawbridge.ServerID, own string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.counts[server][Watched{URI, own}]))
}
