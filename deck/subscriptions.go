package deck

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// A subscriptionTable stores the callers' subscriptions to resources and tasks. It counts the subscriptions to each
// item, because a server needs to be updated only for the first and the last of them. The zero value is ready to use.
type subscriptionTable struct {
	mu sync.Mutex
	// bySubscription contains the state of each subscription. counts contains the number of subscriptions by server,
	// watched item, and public URI or ID.
	bySubscription map[subscription]*subscriptionState
	bySubscriber   map[subscriber]map[subscription]bool // the same subscriptions, by subscriber
	counts         map[drawbridge.ServerID]map[watchedItem]map[string]int
	// serverLocks contains a lock for each server: a channel with a buffer of one. Only the holder of the lock may send
	// the server its watched items, so that an older set never replaces a newer one.
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

// A subscription identifies a subscription of one subscriber to a resource or task. Public is the public URI or task ID
// that the subscriber used.
type subscription struct {
	Principal, Session string
	Topic              watchTopic
	Public             string
}

// A subscriber is one session of a principal, or, with an empty session, all callers of the principal without a
// session.
type subscriber struct{ principal, session string }

func (s subscription) subscriber() subscriber { return subscriber{s.Principal, s.Session} }

// A subscriptionState is the state of a subscription: the server, the server's own URI or ID of the item, and a
// counter. times is how often callers without a session have subscribed; for a session it is always 1.
type subscriptionState struct {
	server drawbridge.ServerID
	own    string
	times  int
}

// lockServer waits until it has acquired the lock of the server, or until ctx ends. The caller must call done to
// release the lock.
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

// Add adds a subscription to the item with the server's own URI or ID own. It returns true if no caller had subscribed
// to the item before. Then the server must be sent the new set of watched items.
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

// hasAny reports whether there are subscriptions to items of a server.
func (w *subscriptionTable) hasAny(server drawbridge.ServerID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.counts[server]) > 0
}

// Remove removes a subscription. It returns true if this was the last subscription to the item. Then the server must be
// sent the new set of watched items.
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

// dropSubscription removes a subscription regardless of its counter, and returns the same result as Remove. The caller
// must hold mu.
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

// dropSession removes all subscriptions of the caller's session. It returns the servers that must be sent a new set of
// watched items.
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

// ForgetServer removes all subscriptions to items of a server that is not configured any more.
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

// taskWatchers returns the principals that subscribed to a server's task. The keys are the sealed task IDs with which
// they subscribed.
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

// watchedURIs returns the public URIs with which callers subscribed to a server's resource, sorted.
func (w *subscriptionTable) watchedURIs(server drawbridge.ServerID, own string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.counts[server][watchedItem{topicURI, own}]))
}
