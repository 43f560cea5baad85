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

// unwatchTimeout limits the time for sending servers their remaining watched items, after a failed subscription or at
// the end of a session.
const unwatchTimeout = 5 * time.Second

// A watchRequest is a requested subscription, with the server's own URI or task ID of the item.
type watchRequest struct {
	sub     subscription
	ownName string
}

// Subscribe subscribes the caller to the resources with these public URIs. It sends each server one update, even for
// several URIs. A second subscription of the same session to the same URI has no effect. A caller without a session
// must call Unsubscribe as often as Subscribe. The error is a *drawbridge.UnwatchedError with the URIs whose
// subscription failed; the caller is subscribed to the others.
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
		if err := entries[uri].End(drawbridge.Result{}, nil); err != nil { // a duplicate of an earlier URI
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

// addSubscriptions adds subscriptions of one caller to items of one server. If an item was not watched before, it sends
// the server the new set of watched items. refused are the subscriptions that failed and were removed again; err is the
// reason.
func (d *Deck) addSubscriptions(ctx context.Context, server drawbridge.ServerID, claims ...watchRequest) (
	refused []watchRequest, err error) {
	first := claims[0].sub
	if m := d.view.Load().server(server); m != nil && m.PerPrincipal && d.owner != "" && d.owner != first.Principal {
		return claims, &drawbridge.Fault{
			Kind: drawbridge.BridgeFault, Code: drawbridge.PolicyBlocked, Step: "watch " + clipText(first.Public),
			Err: errors.New("each principal has its own process of this server, and only the owner's is watched"),
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
	if err := ctx.Err(); err != nil { // EndSession may have run already, so remove them here
		for _, c := range claims {
			d.subscriptions.Remove(c.sub)
		}
		d.resyncWatches(ctx, server)
		return claims, err
	}
	if len(added) == 0 {
		return nil, nil
	}
	if err = d.watch(ctx, server); err == nil {
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

// watch sends a server the items that are watched. Drawbridge's own resources have no server.
func (d *Deck) watch(ctx context.Context, server drawbridge.ServerID) error {
	if server == "" {
		return nil
	}
	return d.upstream.Watch(ctx, server, d.subscriptions.watchedAt(server))
}

// isIn reports whether w contains the item of the requested subscription.
func (c watchRequest) isIn(w drawbridge.WatchSet) bool {
	if c.sub.Topic == topicTask {
		return slices.Contains(w.Tasks, c.ownName)
	}
	return slices.Contains(w.URIs, c.ownName)
}

// resyncWatches sends the server the items that are still watched after subscriptions have failed. The caller must hold
// the server's lock; see lockServer. It works even if ctx has ended.
func (d *Deck) resyncWatches(ctx context.Context, server drawbridge.ServerID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unwatchTimeout)
	defer cancel()
	if err := d.watch(ctx, server); err != nil {
		d.log.Warn("cannot tell the server which items are still watched", "server", server, "err", err)
	}
}

// Unsubscribe removes the caller's subscriptions to the resources with these public URIs. A URI without a subscription
// is not an error.
func (d *Deck) Unsubscribe(ctx context.Context, caller drawbridge.Caller, uris ...string) error {
	return d.removeSubscriptions(ctx, caller, topicURI, uris...)
}

// removeSubscriptions removes the caller's subscriptions to the items with these public URIs or IDs. If one of a
// server's items has lost its last subscriber, it sends the server the new set of watched items.
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
	return d.watch(ctx, server)
}

// ForwardNotification forwards a notification of a client, such as changed roots, to the servers that it concerns; see
// [Upstream]. It does nothing for a caller without a session, because no connection to a server belongs to such a
// caller alone.
func (d *Deck) ForwardNotification(ctx context.Context, caller drawbridge.Caller, method string,
	params json.RawMessage) {
	if caller.Session != "" {
		d.upstream.ForwardNotification(ctx, caller.Session, method, params)
	}
}

// EndSession removes the subscriptions of the caller's session, and closes the connections to servers that were opened
// for this session alone. It does nothing for a caller without a session.
func (d *Deck) EndSession(caller drawbridge.Caller) {
	if caller.Session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(d.ending, unwatchTimeout)
	defer cancel()
	for _, server := range d.subscriptions.dropSession(caller) {
		done, err := d.subscriptions.lockServer(ctx, server)
		if err == nil {
			err = d.watch(ctx, server)
			done()
		}
		if err != nil {
			d.log.Warn("subscription outlives its session", "server", server, "err", err)
		}
	}
	d.upstream.EndSession(caller.Session)
}

// SetLogLevel requests from the servers log messages of this level and above for the caller's session. For a level that
// MCP does not define, it returns an InvalidInput fault.
func (d *Deck) SetLogLevel(ctx context.Context, caller drawbridge.Caller, level string) error {
	switch level {
	case "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency":
		return d.upstream.SetLogLevel(ctx, caller.Session, level)
	}
	return invalidParamsFault(mcp.MethodSetLevel, fmt.Errorf("no such log level %q", clipText(level)))
}
