package deck

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// unwatchTime bounds what the end of a session waits for.
const unwatchTime = 5 * time.Second

// watches count which resources and tasks callers subscribed to, so that a server hears of each once.
type watches struct {
	mu sync.Mutex
	// held has each caller's subscriptions; counts how many of them there are, by server, what it is to the server, and
	// the name by which callers know it.
	held   map[subscription]*hold
	counts map[drawbridge.ServerID]map[watched]map[string]int
	// turns has a one-place channel a server: who holds it may tell the server what is watched, so that the last word
	// said is the last word meant.
	turns map[drawbridge.ServerID]chan struct{}
}

// A topic says what is watched.
type topic uint8

const (
	uriTopic topic = iota
	taskTopic
)

// watched is a resource or a task as its server knows it.
type watched struct {
	topic topic
	own   string
}

// A subscription is one caller's to one URI or task, as the caller knows it.
type subscription struct {
	principal, session string
	topic              topic
	public             string
}

// A hold is what a subscription stands for. A session holds a thing once; callers without one are counted.
type hold struct {
	server drawbridge.ServerID
	own    string
	times  int
}

// Subscribe watches a resource for the caller. A session subscribes once, however often it asks; a caller without a
// session as often as it asks, and must unsubscribe as often.
func (d *Deck) Subscribe(ctx context.Context, caller drawbridge.Caller, uri string) error {
	call := drawbridge.Call{
		Caller: caller, Method: wire.MethodSubscribe,
		Params: wire.Apply(nil, wire.Put(wire.Quote(uri), "uri")),
	}
	t, err := d.findResource(ctx, caller, uri)
	if err != nil {
		return err
	}
	if err := d.allow(ctx, call, t.spec); err != nil {
		return err
	}
	return d.watch(ctx, subscription{caller.Principal, caller.Session, uriTopic, uri}, t.spec.Server, t.own)
}

// watch adds a subscription, and tells the server where it is one to something new.
func (d *Deck) watch(ctx context.Context, sub subscription, server drawbridge.ServerID, own string) error {
	if m := d.view.Load().member(server); m != nil && m.Apart && d.watcher != "" && d.watcher != sub.principal {
		return &drawbridge.Fault{
			Kind: drawbridge.BridgeFault, Code: drawbridge.PolicyBlocked, Step: "watch " + clip(sub.public),
			Err: errors.New("each principal has a process of this server, and only the owner's is watched"),
		}
	}
	done, err := d.watches.turn(ctx, server)
	if err != nil {
		return err
	}
	defer done()
	if !d.watches.add(sub, server, own) {
		return nil
	}
	if err := d.up.Watch(ctx, server, d.watches.watchedOf(server)); err != nil {
		d.watches.remove(sub)
		return err
	}
	return nil
}

// Unsubscribe ends what Subscribe began. Of a URI that the caller never subscribed to it is no error.
func (d *Deck) Unsubscribe(ctx context.Context, caller drawbridge.Caller, uri string) error {
	return d.unwatch(ctx, subscription{caller.Principal, caller.Session, uriTopic, uri})
}

// unwatch takes a subscription back, and tells the server where it was the last one.
func (d *Deck) unwatch(ctx context.Context, sub subscription) error {
	server, ok := d.watches.serverOf(sub)
	if !ok {
		return nil
	}
	done, err := d.watches.turn(ctx, server)
	if err != nil {
		return err
	}
	defer done()
	if !d.watches.remove(sub) {
		return nil
	}
	return d.up.Watch(ctx, server, d.watches.watchedOf(server))
}

// RootsChanged passes on that the caller's roots have changed. A caller without a session has told nobody of any.
func (d *Deck) RootsChanged(ctx context.Context, caller drawbridge.Caller) {
	if caller.Session != "" {
		d.up.RootsChanged(ctx, caller.Session)
	}
}

// EndSession forgets what the caller's session had: its subscriptions, and what was opened upstream for it.
// A caller without a session has nothing to end.
func (d *Deck) EndSession(caller drawbridge.Caller) {
	if caller.Session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), unwatchTime)
	defer cancel()
	for _, server := range d.watches.endSession(caller) {
		done, err := d.watches.turn(ctx, server)
		if err == nil {
			err = d.up.Watch(ctx, server, d.watches.watchedOf(server))
			done()
		}
		if err != nil {
			d.log.Warn("a subscription outlives its session", "server", server, "err", err)
		}
	}
	d.up.EndSession(caller.Session)
}

// SetLevel asks for log lines of a level and above, for the caller's session.
func (d *Deck) SetLevel(ctx context.Context, caller drawbridge.Caller, level string) error {
	switch level {
	case "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency":
		return d.up.SetLevel(ctx, caller.Session, level)
	}
	return invalid(wire.MethodSetLevel, fmt.Errorf("no such log level %q", clip(level)))
}

// turn waits until the caller may tell the server what is watched.
func (w *watches) turn(ctx context.Context, server drawbridge.ServerID) (done func(), err error) {
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

// add counts a subscription and says whether the server must be told of a new URI.
func (w *watches) add(sub subscription, server drawbridge.ServerID, own string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held == nil {
		w.held = map[subscription]*hold{}
		w.counts = map[drawbridge.ServerID]map[watched]map[string]int{}
	}
	if h := w.held[sub]; h != nil {
		if sub.session == "" {
			h.times++
		}
		return false
	}
	w.held[sub] = &hold{server, own, 1}
	all := w.counts[server]
	if all == nil {
		all = map[watched]map[string]int{}
		w.counts[server] = all
	}
	what := watched{sub.topic, own}
	isNew := all[what] == nil
	if isNew {
		all[what] = map[string]int{}
	}
	all[what][sub.public]++
	return isNew
}

// remove takes a subscription back and says whether the server must be told that a URI is gone.
func (w *watches) remove(sub subscription) bool {
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
func (w *watches) drop(sub subscription, h *hold) bool {
	delete(w.held, sub)
	what := watched{sub.topic, h.own}
	public := w.counts[h.server][what]
	if public[sub.public]--; public[sub.public] == 0 {
		delete(public, sub.public)
	}
	if len(public) > 0 {
		return false
	}
	delete(w.counts[h.server], what)
	return true
}

// endSession forgets the caller's subscriptions and gives the servers that must be told.
func (w *watches) endSession(caller drawbridge.Caller) []drawbridge.ServerID {
	w.mu.Lock()
	defer w.mu.Unlock()
	tell := map[drawbridge.ServerID]bool{}
	for sub, h := range w.held {
		if sub.principal == caller.Principal && sub.session == caller.Session && w.drop(sub, h) {
			tell[h.server] = true
		}
	}
	return slices.Sorted(maps.Keys(tell))
}

// forget drops what is held of a server that is gone.
func (w *watches) forget(server drawbridge.ServerID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.held, func(_ subscription, h *hold) bool { return h.server == server })
	delete(w.counts, server)
}

func (w *watches) serverOf(sub subscription) (drawbridge.ServerID, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.held[sub]
	if h == nil {
		return "", false
	}
	return h.server, true
}

// watchedOf is all that is watched of a server, sorted.
func (w *watches) watchedOf(server drawbridge.ServerID) drawbridge.Watched {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out drawbridge.Watched
	for what := range w.counts[server] {
		if what.topic == taskTopic {
			out.Tasks = append(out.Tasks, what.own)
		} else {
			out.URIs = append(out.URIs, what.own)
		}
	}
	slices.Sort(out.URIs)
	slices.Sort(out.Tasks)
	return out
}

// watchersOf gives the principals who watch a server's task, by the ids that they watch it by.
func (w *watches) watchersOf(server drawbridge.ServerID, own string) map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.counts[server][watched{taskTopic, own}] == nil {
		return nil
	}
	out := map[string]string{}
	for sub, h := range w.held {
		if sub.topic == taskTopic && h.server == server && h.own == own {
			out[sub.public] = sub.principal
		}
	}
	return out
}

// publicOf gives the URIs by which a server's resource is watched, sorted.
func (w *watches) publicOf(server drawbridge.ServerID, own string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.counts[server][watched{uriTopic, own}]))
}
