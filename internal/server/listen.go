package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A subscription is an open subscriptions/listen request of a stateless client. It contains those of the requested
// items that the deck can watch.
type subscription struct {
	watcher *watcher
	// accepted is the object "notifications" that the client receives in the acknowledgement.
	accepted json.RawMessage
	// isEmpty is set if the subscription has no items, so that no event can occur. end cancels the subscription.
	isEmpty bool
	end     func()
}

// openSubscription reads a subscriptions/listen request and begins to watch the requested items. It returns an error
// reply for an invalid request.
func (s *Server) openSubscription(ctx context.Context, caller drawbridge.Caller, m mcp.Message) (subscription, reply) {
	want := rawjson.Get(m.Params, "notifications")
	if !isObject(want) {
		return subscription{}, failureReply(mcp.CodeInvalidParams, "Missing notifications", nil)
	}
	caps := s.capabilities(caller)
	wants := func(member, kind string) bool {
		return string(rawjson.Get(want, member)) == "true" && string(rawjson.Get(caps, kind, "listChanged")) == "true"
	}
	// The subscription is used after the request's body is released, so it must not refer to the body.
	caller.Client, caller.Capabilities = bytes.Clone(caller.Client), bytes.Clone(caller.Capabilities)
	w := newWatcher(caller, bytes.Clone(m.ID), listChanges{
		tools:     wants("toolsListChanged", "tools"),
		prompts:   wants("promptsListChanged", "prompts"),
		resources: wants("resourcesListChanged", "resources"),
	})
	sub := subscription{watcher: w}
	remove := s.watchers.add(w)
	var uris []string
	if string(rawjson.Get(caps, "resources", "subscribe")) == "true" {
		uris = s.subscribeAll(ctx, w, rawjson.Get(want, "resourceSubscriptions"))
	}
	tasks, err := s.watchTasks(ctx, w, rawjson.Get(want, "taskIds"))
	sub.end = func() {
		remove()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unwatchTime)
		defer cancel()
		if len(uris) > 0 {
			s.logLeakedSubscription(s.deck.Unsubscribe(ctx, caller, uris...))
		}
		for _, id := range tasks {
			s.logLeakedSubscription(s.deck.(taskDeck).UnwatchTask(ctx, caller, id))
		}
	}
	if err != nil {
		sub.end()
		return subscription{}, s.errorReply(ctx, caller, m.Method, m.Params, err)
	}
	sub.accepted = acceptedNotifications(w.lists, uris, tasks)
	sub.isEmpty = w.lists == (listChanges{}) && len(uris) == 0 && len(tasks) == 0
	return sub, reply{}
}

func (s *Server) logLeakedSubscription(err error) {
	if err != nil {
		s.log.Warn("a subscription outlives its listener", "err", err)
	}
}

// A taskDeck is a deck whose tasks can be watched.
type taskDeck interface {
	WatchTask(ctx context.Context, caller drawbridge.Caller, id string) error
	UnwatchTask(ctx context.Context, caller drawbridge.Caller, id string) error
}

var _ taskDeck = (*deck.Deck)(nil)

// watchTasks watches the requested tasks that the caller may see, and returns their ids. It returns an error if the
// caller did not declare the tasks extension: SEP-2663 requires to refuse the whole request then.
func (s *Server) watchTasks(ctx context.Context, w *watcher, wanted json.RawMessage) (ids []string, err error) {
	d, ok := s.deck.(taskDeck)
	if !ok {
		return nil, nil
	}
	for raw := range rawjson.Elements(wanted) {
		id, ok := rawjson.DecodeString(raw)
		if !ok || w.tasks[id] {
			continue
		}
		if !w.watchTask(id) {
			break
		}
		if err := d.WatchTask(ctx, w.caller, id); err != nil {
			w.forgetTask(id) // the acknowledgement does not list the task
			if f := drawbridge.AsFault(err); mcp.ErrorCode(f.Raw) == mcp.CodeMissingCapability {
				return ids, err
			}
			continue
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// unwatchTime is the time limit for cancelling the subscriptions of a listen request.
const unwatchTime = 5 * time.Second

// subscribeAll subscribes to the wanted URIs, and returns the URIs for which this succeeded.
func (s *Server) subscribeAll(ctx context.Context, w *watcher, wanted json.RawMessage) (uris []string) {
	for raw := range rawjson.Elements(wanted) {
		uri, ok := rawjson.DecodeString(raw)
		if !ok || w.uris[uri] {
			continue
		}
		if !w.watchResource(uri) {
			break
		}
		uris = append(uris, uri)
	}
	if len(uris) == 0 {
		return nil
	}
	all := drawbridge.WatchSet{URIs: uris}
	if err := s.deck.Subscribe(ctx, w.caller, uris...); err != nil {
		not := all
		if some, ok := errors.AsType[*drawbridge.UnwatchedError](err); ok {
			not = some.Unwatched
		}
		for _, uri := range not.URIs {
			w.forgetResource(uri) // the acknowledgement does not list the resource
		}
		all = all.Without(not)
	}
	return all.URIs
}

func acceptedNotifications(lists listChanges, uris, tasks []string) json.RawMessage {
	out := json.RawMessage(`{}`)
	yes := json.RawMessage(`true`)
	if lists.tools {
		out = rawjson.Apply(out, rawjson.Put(yes, "toolsListChanged"))
	}
	if lists.prompts {
		out = rawjson.Apply(out, rawjson.Put(yes, "promptsListChanged"))
	}
	if lists.resources {
		out = rawjson.Apply(out, rawjson.Put(yes, "resourcesListChanged"))
	}
	if len(uris) > 0 {
		out = rawjson.Apply(out, rawjson.Put(rawjson.AppendStrings(nil, uris...), "resourceSubscriptions"))
	}
	if len(tasks) > 0 {
		out = rawjson.Apply(out, rawjson.Put(rawjson.AppendStrings(nil, tasks...), "taskIds"))
	}
	return out
}

// acknowledgement returns the first message of the stream, which lists the accepted items.
func (sub subscription) acknowledgement() []byte {
	return sub.watcher.encodeNotification(mcp.NoteListenAck, rawjson.Apply(nil, rawjson.Put(sub.accepted,
		"notifications")))
}

// listenResult returns the response to subscriptions/listen. It is sent when the server, not the client, ends the
// stream.
func (s *Server) listenResult(sub subscription) reply {
	meta := append([]byte(`{"resultType":"complete","_meta":{"`+mcp.MetaSubscriptionID+`":`), sub.watcher.listenID...)
	meta = append(append(meta, `,"`+mcp.MetaServerInfo+`":`...), s.info...)
	return resultReply(append(meta, '}', '}'))
}

// serveListen responds to subscriptions/listen over HTTP with a stream of notifications. The stream ends when the
// client disconnects or the server shuts down.
func (d *httpHandler) serveListen(x *postExchange, caller drawbridge.Caller, m mcp.Message) {
	if !x.stream {
		x.respond(m.ID, http.StatusNotAcceptable, failureReply(mcp.CodeInvalidRequest,
			"The answer is a stream of events", nil))
		return
	}
	sub, refusal := d.s.openSubscription(x.r.Context(), caller, m)
	if !refusal.isNone() {
		x.respond(m.ID, httpStatus(refusal), refusal)
		return
	}
	defer sub.end()
	out := x.takeOverStream()
	if out(eventFrame(sub.acknowledgement())) != nil {
		return
	}
	if sub.isEmpty || d.streamNotifications(x.r.Context(), nil, sub.watcher, out) {
		_ = out(eventFrame(d.s.listenResult(sub).line(sub.watcher.listenID))) // an error means that the client is gone
	}
}
