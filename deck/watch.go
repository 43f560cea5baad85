package deck

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck/trail"
	"github.com/drawbridge-mcp/drawbridge/deck/vigil"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// unwatchTime bounds what the end of a session waits for.
const unwatchTime = 5 * time.Second

// A claim is a subscription that is to be, and what the server knows it by.
type claim struct {
	sub vigil.Subscription
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
			err = d.allow(ctx, call, t.kind, t.spec)
		}
		if err != nil {
			fail(entry.Leave(drawbridge.Result{}, err), uri)
			continue
		}
		if err := entries[uri].Leave(drawbridge.Result{}, nil); err != nil { // it was named before
			fail(err, uri)
		}
		entries[uri] = entry
		claims[t.spec.Server] = append(claims[t.spec.Server], claim{vigil.Subscription{Principal: caller.Principal, Session: caller.Session, Topic: vigil.URI, Public: uri}, t.own})
	}
	for _, server := range slices.Sorted(maps.Keys(claims)) {
		refused, err := d.watch(ctx, server, claims[server]...)
		for _, c := range refused {
			fail(entries[c.sub.Public].Leave(drawbridge.Result{}, err), c.sub.Public)
			delete(entries, c.sub.Public)
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
	if m := d.view.Load().member(server); m != nil && m.Apart && d.watcher != "" && d.watcher != first.Principal {
		return claims, &drawbridge.Fault{
			Kind: drawbridge.BridgeFault, Code: drawbridge.PolicyBlocked, Step: "watch " + clip(first.Public),
			Err: errors.New("each principal has a process of this server, and only the owner's is watched"),
		}
	}
	done, err := d.watches.Turn(ctx, server)
	if err != nil {
		return claims, err
	}
	defer done()
	added := map[vigil.Watched]bool{}
	for _, c := range claims {
		if d.watches.Add(c.sub, server, c.own) {
			added[vigil.Watched{Topic: c.sub.Topic, Own: c.own}] = true
		}
	}
	if err := ctx.Err(); err != nil { // the session may have ended before, and nobody else would take these back
		for _, c := range claims {
			d.watches.Remove(c.sub)
		}
		d.rewatch(ctx, server)
		return claims, err
	}
	if len(added) == 0 {
		return nil, nil
	}
	if err = d.up.Watch(ctx, server, d.watches.WatchedOf(server)); err == nil {
		return nil, nil
	}
	some, partly := errors.AsType[*drawbridge.UnwatchedError](err)
	for _, c := range claims {
		if added[vigil.Watched{Topic: c.sub.Topic, Own: c.own}] && (!partly || c.among(some.What)) {
			refused = append(refused, c)
			d.watches.Remove(c.sub)
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
	if c.sub.Topic == vigil.Task {
		return slices.Contains(w.Tasks, c.own)
	}
	return slices.Contains(w.URIs, c.own)
}

// rewatch tells the server what is left to be watched after something came to nothing, whose caller may be gone. Its turn
// is the caller's.
func (d *Deck) rewatch(ctx context.Context, server drawbridge.ServerID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unwatchTime)
	defer cancel()
	if err := d.up.Watch(ctx, server, d.watches.WatchedOf(server)); err != nil {
		d.log.Warn("a server was not told that something is not watched", "server", server, "err", err)
	}
}

// Unsubscribe ends what Subscribe began. Of a URI that the caller never subscribed to it is no error.
func (d *Deck) Unsubscribe(ctx context.Context, caller drawbridge.Caller, uris ...string) error {
	return d.unwatch(ctx, caller, vigil.URI, uris...)
}

// unwatch takes a caller's subscriptions back, and tells each server where any was the last one to something.
func (d *Deck) unwatch(ctx context.Context, caller drawbridge.Caller, topic vigil.Topic, public ...string) error {
	subs := map[drawbridge.ServerID][]vigil.Subscription{}
	for _, name := range public {
		sub := vigil.Subscription{Principal: caller.Principal, Session: caller.Session, Topic: topic, Public: name}
		if server, ok := d.watches.ServerOf(sub); ok {
			subs[server] = append(subs[server], sub)
		}
	}
	var faults []error
	for _, server := range slices.Sorted(maps.Keys(subs)) {
		faults = append(faults, d.unwatchAt(ctx, server, subs[server]))
	}
	return cmp.Or(faults...)
}

func (d *Deck) unwatchAt(ctx context.Context, server drawbridge.ServerID, subs []vigil.Subscription) error {
	done, err := d.watches.Turn(ctx, server)
	if err != nil {
		return err
	}
	defer done()
	tell := false
	for _, sub := range subs {
		tell = d.watches.Remove(sub) || tell
	}
	if !tell {
		return nil
	}
	return d.up.Watch(ctx, server, d.watches.WatchedOf(server))
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
	for _, server := range d.watches.EndSession(caller) {
		done, err := d.watches.Turn(ctx, server)
		if err == nil {
			err = d.up.Watch(ctx, server, d.watches.WatchedOf(server))
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
