package deck

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// A subscriptionTable counts the callers' subscriptions to resources and tasks, so that each item is watched only once
// at its server. The zero value is ready to use.
type subscriptionTable struct {
	mu sync.Mutex
	// bySubscription has the state of each subscription. counts has the number of subscriptions by server, watched item
	// and public name.
	bySubscription map[subscription]*subscriptionState
	bySubscriber   map[subscriber]map[subscription]bool // the same subscriptions, by subscriber
	counts         map[drawbridge.ServerID]map[watchedItem]map[string]int
	// serverLocks has a lock for each server: a channel with a buffer of one. Only the holder of the lock may send the
	// server the watched items, so that the last update is the newest.
	serverLocks map[drawbridge.ServerID]chan struct{}
}

// A watchTopic is the kind of a watched item.
type watchTopic uint8

// The topics: topicURI for a resource, topicTask for a task.
const (
	topicURI watchTopic = iota
	topicTask
)

// A watchedItem is a resource or task, identified by the server's own URI or ID.
type watchedItem struct {
	Topic watchTopic
	Own   string
}

// A subscription is the subscription of one caller to a resource or task, identified by its public URI or ID.
type subscription struct {
	Principal, Session string
	Topic              watchTopic
	Public             string
}

// A subscriber is a session, or all callers of a principal that have no session.
type subscriber struct{ principal, session string }

func (s subscription) subscriber() subscriber { return subscriber{s.Principal, s.Session} }

// A subscriptionState is the state of a subscription. times counts the subscriptions of callers without a session; for
// a session it is 1.
type subscriptionState struct {
	server drawbridge.ServerID
	own    string
	times  int
}

// lockServer waits until the caller holds the lock of the server. Call done to release the lock.
func (w *subscriptionTable) lockServer(ctx context.Context, server drawbridge.ServerID) (done func(), err error) {
	w.mu.Lock()
	if w.serverLocks == nil {
		w.serverLocks = map[drawbridge.ServerID]chan struct{}{}
	}
	turn := w.serverLocks[server]
	if turn == nil {
		turn = make(chan struct{}, 1)
		w.serverLocks[server] = turn
	}
	w.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Add adds a subscription. It reports whether the item is new, so that the server must be updated.
func (w *subscriptionTable) Add(sub subscription, server drawbridge.ServerID, own string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bySubscription == nil {
		w.bySubscription, w.bySubscriber = map[subscription]*subscriptionState{}, map[subscriber]map[subscription]bool{}
		w.counts = map[drawbridge.ServerID]map[watchedItem]map[string]int{}
	}
	if h := w.bySubscription[sub]; h != nil {
		if sub.Session == "" {
			h.times++
		}
		return false
	}
	w.bySubscription[sub] = &subscriptionState{server, own, 1}
	if w.bySubscriber[sub.subscriber()] == nil {
		w.bySubscriber[sub.subscriber()] = map[subscription]bool{}
	}
	w.bySubscriber[sub.subscriber()][sub] = true
	all := w.counts[server]
	if all == nil {
		all = map[watchedItem]map[string]int{}
		w.counts[server] = all
	}
	item := watchedItem{sub.Topic, own}
	isNew := all[item] == nil
	if isNew {
		all[item] = map[string]int{}
	}
	all[item][sub.Public]++
	return isNew
}

// Remove removes a subscription. It reports whether the item has lost its last subscription, so that the server must be
// updated.
func (w *subscriptionTable) Remove(sub subscription) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.bySubscription[sub]
	if h == nil {
		return false
	}
	if h.times--; h.times > 0 {
		return false
	}
	return w.dropSubscription(sub, h)
}

// dropSubscription removes a subscription, with the same result as Remove. The caller must hold mu.
func (w *subscriptionTable) dropSubscription(sub subscription, h *subscriptionState) bool {
	w.unindex(sub)
	item := watchedItem{sub.Topic, h.own}
	public := w.counts[h.server][item]
	if public[sub.Public]--; public[sub.Public] == 0 {
		delete(public, sub.Public)
	}
	if len(public) > 0 {
		return false
	}
	delete(w.counts[h.server], item)
	return true
}

// unindex removes a subscription from bySubscription and bySubscriber. The caller must hold mu.
func (w *subscriptionTable) unindex(sub subscription) {
	delete(w.bySubscription, sub)
	if own := w.bySubscriber[sub.subscriber()]; own != nil {
		if delete(own, sub); len(own) == 0 {
			delete(w.bySubscriber, sub.subscriber())
		}
	}
}

// dropSession removes the caller's subscriptions, and returns the servers that must be updated.
func (w *subscriptionTable) dropSession(caller drawbridge.Caller) []drawbridge.ServerID {
	w.mu.Lock()
	defer w.mu.Unlock()
	tell := map[drawbridge.ServerID]bool{}
	for sub := range w.bySubscriber[subscriber{caller.Principal, caller.Session}] {
		if h := w.bySubscription[sub]; w.dropSubscription(sub, h) {
			tell[h.server] = true
		}
	}
	return slices.Sorted(maps.Keys(tell))
}

// ForgetServer removes the subscriptions of a removed server.
func (w *subscriptionTable) ForgetServer(server drawbridge.ServerID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for sub, h := range w.bySubscription {
		if h.server == server {
			w.unindex(sub)
		}
	}
	delete(w.counts, server)
}

func (w *subscriptionTable) serverOf(sub subscription) (drawbridge.ServerID, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.bySubscription[sub]
	if h == nil {
		return "", false
	}
	return h.server, true
}

// watchedAt returns the watched items of a server, sorted.
func (w *subscriptionTable) watchedAt(server drawbridge.ServerID) drawbridge.WatchSet {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out drawbridge.WatchSet
	for item := range w.counts[server] {
		if item.Topic == topicTask {
			out.Tasks = append(out.Tasks, item.Own)
		} else {
			out.URIs = append(out.URIs, item.Own)
		}
	}
	slices.Sort(out.URIs)
	slices.Sort(out.Tasks)
	return out
}

// taskWatchers returns the principals that watch a server's task. The keys are the public task IDs of the principals.
func (w *subscriptionTable) taskWatchers(server drawbridge.ServerID, own string) map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.counts[server][watchedItem{topicTask, own}] == nil {
		return nil
	}
	out := map[string]string{}
	for sub, h := range w.bySubscription {
		if sub.Topic == topicTask && h.server == server && h.own == own {
			out[sub.Public] = sub.Principal
		}
	}
	return out
}

// watchedURIs returns the public URIs with which callers watch a server's resource, sorted.
func (w *subscriptionTable) watchedURIs(server drawbridge.ServerID, own string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.counts[server][watchedItem{topicURI, own}]))
}
