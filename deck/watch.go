package deck

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck/trail"
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

// A claim is a subscription that is to be, and what the server knows it by.
type claim struct {
	sub subscription
	own string
}

// Subscribe watches resources for the caller, each server's in one go. A session subscribes to one once, however often it
// asks; a caller without a session as often as it asks, and must unsubscribe as often. The error is a
// *drawbridge.UnwatchedError for those URIs that are not watched; the others are.
func (d *Deck) Subscribe(ctx context.Context, caller drawbridge.Caller, uris ...string) error {
	var failed drawbridge.UnwatchedError
	entries := map[string]*trail.Entry{}
	fail := func(err error, uris ...string) {
		failed.What.URIs = append(failed.What.URIs, uris...)
		failed.Err = cmp.Or(failed.Err, err)
	}
	claims := map[drawbridge.ServerID][]claim{}
	for _, uri := range uris {
		call := drawbridge.Call{
			Caller: caller, Method: wire.MethodSubscribe, Params: wire.Apply(nil, wire.Put(wire.Quote(uri), "uri")),
		}
		ctx, entry := d.trail.Enter(ctx, call)
		t, err := d.findResource(ctx, caller, uri)
		if err == nil {
			err = d.allow(ctx, call, t.spec)
		}
		if err != nil {
			fail(entry.Leave(drawbridge.Result{}, err), uri)
			continue
		}
		if err := entries[uri].Leave(drawbridge.Result{}, nil); err != nil { // it was named before
			fail(err, uri)
		}
		entries[uri] = entry
		claims[t.spec.Server] = append(claims[t.spec.Server], claim{subscription{caller.Principal, caller.Session, uriTopic, uri}, t.own})
	}
	for _, server := range slices.Sorted(maps.Keys(claims)) {
		refused, err := d.watch(ctx, server, claims[server]...)
		for _, c := range refused {
			fail(entries[c.sub.public].Leave(drawbridge.Result{}, err), c.sub.public)
			delete(entries, c.sub.public)
		}
	}
	for uri, entry := range entries {
		if err := entry.Leave(drawbridge.Result{}, nil); err != nil {
			fail(err, uri)
		}
	}
	if failed.Err != nil {
		return &failed
	}
	return nil
}

// watch adds subscriptions of one caller, and tells the server where any is one to something new. It gives those that came
// to nothing, and why.
func (d *Deck) watch(ctx context.Context, server drawbridge.ServerID, claims ...claim) (refused []claim, err error) {
	first := claims[0].sub
	if m := d.view.Load().member(server); m != nil && m.Apart && d.watcher != "" && d.watcher != first.principal {
		return claims, &drawbridge.Fault{
			Kind: drawbridge.BridgeFault, Code: drawbridge.PolicyBlocked, Step: "watch " + clip(first.public),
			Err: errors.New("each principal has a process of this server, and only the owner's is watched"),
		}
	}
	done, err := d.watches.turn(ctx, server)
	if err != nil {
		return claims, err
	}
	defer done()
	added := map[watched]bool{}
	for _, c := range claims {
		if d.watches.add(c.sub, server, c.own) {
			added[watched{c.sub.topic, c.own}] = true
		}
	}
	if len(added) == 0 {
		return nil, nil
	}
	if err = d.up.Watch(ctx, server, d.watches.watchedOf(server)); err == nil {
		return nil, nil
	}
	some, partly := errors.AsType[*drawbridge.UnwatchedError](err)
	for _, c := range claims {
		if added[watched{c.sub.topic, c.own}] && (!partly || c.among(some.What)) {
			refused = append(refused, c)
			d.watches.remove(c.sub)
		}
	}
	if partly {
		err = some.Err
	}
	d.rewatch(ctx, server)
	return refused, err
}

// among says whether the server means the claim.
func (c claim) among(w drawbridge.Watched) bool {
	if c.sub.topic == taskTopic {
		return slices.Contains(w.Tasks, c.own)
	}
	return slices.Contains(w.URIs, c.own)
}

// rewatch tells the server what is left to be watched after something came to nothing, whose caller may be gone. Its turn
// is the caller's.
func (d *Deck) rewatch(ctx context.Context, server drawbridge.ServerID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unwatchTime)
	defer cancel()
	if err := d.up.Watch(ctx, server, d.watches.watchedOf(server)); err != nil {
		d.log.Warn("a server was not told that something is not watched", "server", server, "err", err)
	}
}

// Unsubscribe ends what Subscribe began. Of a URI that the caller never subscribed to it is no error.
func (d *Deck) Unsubscribe(ctx context.Context, caller drawbridge.Caller, uris ...string) error {
	return d.unwatch(ctx, caller, uriTopic, uris...)
}

// unwatch takes a caller's subscriptions back, and tells each server where any was the last one to something.
func (d *Deck) unwatch(ctx context.Context, caller drawbridge.Caller, topic topic, public ...string) error {
	subs := map[drawbridge.ServerID][]subscription{}
	for _, name := range public {
		sub := subscription{caller.Principal, caller.Session, topic, name}
		if server, ok := d.watches.serverOf(sub); ok {
			subs[server] = append(subs[server], sub)
		}
	}
	var faults []error
	for _, server := range slices.Sorted(maps.Keys(subs)) {
		faults = append(faults, d.unwatchAt(ctx, server, subs[server]))
	}
	return cmp.Or(faults...)
}

func (d *Deck) unwatchAt(ctx context.Context, server drawbridge.ServerID, subs []subscription) error {
	done, err := d.watches.turn(ctx, server)
	if err != nil {
		return err
	}
	defer done()
	tell := false
	for _, sub := range subs {
		tell = d.watches.remove(sub) || tell
	}
	if !tell {
		return nil
	}
	return d.up.Watch(ctx, server, d.watches.watchedOf(server))
}

// Tell passes on a notification of the caller's: that its roots have changed, or what an extension has. A caller without a
// session has nobody who knows it.
func (d *Deck) Tell(ctx context.Context, caller drawbridge.Caller, method string, params json.RawMessage) {
	if caller.Session != "" {
		d.up.Tell(ctx, caller.Session, method, params)
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
