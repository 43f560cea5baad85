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
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// unwatchTimeout bounds what the end of a session waits for.
const unwatchTimeout = 5 * time.Second

// A watchRequest is a subscription that is to be, and what the server knows it by.
type watchRequest struct {
	sub     subscription
	ownName string
}

// Subscribe watches resources for the caller, each server's in one go. A session subscribes to one once, however often
// it asks; a caller without a session as often as it asks, and must unsubscribe as often. The error is a
// *drawbridge.UnwatchedError for those URIs that are not watched; the others are.
func (d *Deck) Subscribe(ctx context.Context, caller drawbridge.Caller, uris ...string) error {
	var failed drawbridge.UnwatchedError
	entries := map[string]*audit.LoggedCall{}
	fail := func(err error, uris ...string) {
		failed.Unwatched.URIs = append(failed.Unwatched.URIs, uris...)
		failed.Err = cmp.Or(failed.Err, err)
	}
	claims := map[drawbridge.ServerID][]watchRequest{}
	for _, uri := range uris {
		call := drawbridge.Call{
			Caller: caller, Method: mcp.MethodSubscribe, Params: rawjson.Apply(nil,
				rawjson.Put(rawjson.Quote(uri), "uri")),
		}
		ctx, entry := d.callLog.Begin(ctx, call)
		t, err := d.findResource(ctx, entry, caller, uri)
		if err == nil {
			err = d.authorizeCall(ctx, entry, call, t.kind, t.spec)
		}
		if err != nil {
			fail(entry.End(drawbridge.Result{}, err), uri)
			continue
		}
		if err := entries[uri].End(drawbridge.Result{}, nil); err != nil { // it was named before
			fail(err, uri)
		}
		entries[uri] = entry
		claims[t.spec.Server] = append(claims[t.spec.Server], watchRequest{subscription{Principal: caller.Principal,
			Session: caller.Session, Topic: topicURI, Public: uri}, t.ownName})
	}
	for _, server := range slices.Sorted(maps.Keys(claims)) {
		refused, err := d.addSubscriptions(ctx, server, claims[server]...)
		for _, c := range refused {
			fail(entries[c.sub.Public].End(drawbridge.Result{}, err), c.sub.Public)
			delete(entries, c.sub.Public)
		}
	}
	for uri, entry := range entries {
		if err := entry.End(drawbridge.Result{}, nil); err != nil {
			fail(err, uri)
		}
	}
	if failed.Err != nil {
		return &failed
	}
	return nil
}

// addSubscriptions adds subscriptions of one caller, and tells the server where any is one to something new. It gives
// those that came to nothing, and why.
func (d *Deck) addSubscriptions(ctx context.Context, server drawbridge.ServerID, claims ...watchRequest) (
	refused []watchRequest, err error) {
	first := claims[0].sub
	if m := d.view.Load().server(server); m != nil && m.PerPrincipal && d.owner != "" && d.owner != first.Principal {
		return claims, &drawbridge.Fault{
			Kind: drawbridge.BridgeFault, Code: drawbridge.PolicyBlocked, Step: "watch " + clipText(first.Public),
			Err: errors.New("each principal has a process of this server, and only the owner's is watched"),
		}
	}
	done, err := d.subscriptions.lockServer(ctx, server)
	if err != nil {
		return claims, err
	}
	defer done()
	added := map[watchedItem]bool{}
	for _, c := range claims {
		if d.subscriptions.Add(c.sub, server, c.ownName) {
			added[watchedItem{Topic: c.sub.Topic, Own: c.ownName}] = true
		}
	}
	if err := ctx.Err(); err != nil { // the session may have ended before, and nobody else would take these back
		for _, c := range claims {
			d.subscriptions.Remove(c.sub)
		}
		d.resyncWatches(ctx, server)
		return claims, err
	}
	if len(added) == 0 {
		return nil, nil
	}
	if err = d.upstream.Watch(ctx, server, d.subscriptions.watchedAt(server)); err == nil {
		return nil, nil
	}
	some, partly := errors.AsType[*drawbridge.UnwatchedError](err)
	for _, c := range claims {
		if added[watchedItem{Topic: c.sub.Topic, Own: c.ownName}] && (!partly || c.isIn(some.Unwatched)) {
			refused = append(refused, c)
			d.subscriptions.Remove(c.sub)
		}
	}
	if partly {
		err = some.Err
	}
	d.resyncWatches(ctx, server)
	return refused, err
}

// isIn says whether the server means the claim.
func (c watchRequest) isIn(w drawbridge.WatchSet) bool {
	if c.sub.Topic == topicTask {
		return slices.Contains(w.Tasks, c.ownName)
	}
	return slices.Contains(w.URIs, c.ownName)
}

// resyncWatches tells the server what is left to be watched after something came to nothing, whose caller may be gone.
// Its turn is the caller's.
func (d *Deck) resyncWatches(ctx context.Context, server drawbridge.ServerID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unwatchTimeout)
	defer cancel()
	if err := d.upstream.Watch(ctx, server, d.subscriptions.watchedAt(server)); err != nil {
		d.log.Warn("a server was not told that something is not watched", "server", server, "err", err)
	}
}

// Unsubscribe ends what Subscribe began. Of a URI that the caller never subscribed to it is no error.
func (d *Deck) Unsubscribe(ctx context.Context, caller drawbridge.Caller, uris ...string) error {
	return d.removeSubscriptions(ctx, caller, topicURI, uris...)
}

// removeSubscriptions takes a caller's subscriptions back, and tells each server where any was the last one to
// something.
func (d *Deck) removeSubscriptions(ctx context.Context, caller drawbridge.Caller, topic watchTopic,
	public ...string) error {
	subs := map[drawbridge.ServerID][]subscription{}
	for _, name := range public {
		sub := subscription{Principal: caller.Principal, Session: caller.Session, Topic: topic, Public: name}
		if server, ok := d.subscriptions.serverOf(sub); ok {
			subs[server] = append(subs[server], sub)
		}
	}
	var faults []error
	for _, server := range slices.Sorted(maps.Keys(subs)) {
		faults = append(faults, d.removeFromServer(ctx, server, subs[server]))
	}
	return cmp.Or(faults...)
}

func (d *Deck) removeFromServer(ctx context.Context, server drawbridge.ServerID, subs []subscription) error {
	done, err := d.subscriptions.lockServer(ctx, server)
	if err != nil {
		return err
	}
	defer done()
	tell := false
	for _, sub := range subs {
		tell = d.subscriptions.Remove(sub) || tell
	}
	if !tell {
		return nil
	}
	return d.upstream.Watch(ctx, server, d.subscriptions.watchedAt(server))
}

// ForwardNotification passes on a notification of the caller's: that its roots have changed, or what an extension has.
// A caller without a session has nobody who knows it.
func (d *Deck) ForwardNotification(ctx context.Context, caller drawbridge.Caller, method string,
	params json.RawMessage) {
	if caller.Session != "" {
		d.upstream.ForwardNotification(ctx, caller.Session, method, params)
	}
}

// EndSession forgets what the caller's session had: its subscriptions, and what was opened upstream for it.
// A caller without a session has nothing to end.
func (d *Deck) EndSession(caller drawbridge.Caller) {
	if caller.Session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), unwatchTimeout)
	defer cancel()
	for _, server := range d.subscriptions.dropSession(caller) {
		done, err := d.subscriptions.lockServer(ctx, server)
		if err == nil {
			err = d.upstream.Watch(ctx, server, d.subscriptions.watchedAt(server))
			done()
		}
		if err != nil {
			d.log.Warn("a subscription outlives its session", "server", server, "err", err)
		}
	}
	d.upstream.EndSession(caller.Session)
}

// SetLogLevel asks for log lines of a level and above, for the caller's session.
func (d *Deck) SetLogLevel(ctx context.Context, caller drawbridge.Caller, level string) error {
	switch level {
	case "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency":
		return d.upstream.SetLogLevel(ctx, caller.Session, level)
	}
	return invalidParamsFault(mcp.MethodSetLevel, fmt.Errorf("no such log level %q", clipText(level)))
}
