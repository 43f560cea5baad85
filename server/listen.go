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
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A subscription is what a stateless client listens to: the part of what it asked for that the deck has.
type subscription struct {
	watcher *watcher
	// agreed is the "notifications" object of the acknowledgement.
	agreed json.RawMessage
	// nothing says that there is nothing to wait for; end gives everything back.
	nothing bool
	end     func()
}

// subscription reads a subscriptions/listen request, and starts to watch what it asks for.
func (s *Server) subscription(ctx context.Context, caller drawbridge.Caller, m wire.Message) (subscription, reply) {
	want := wire.Get(m.Params, "notifications")
	if !isObject(want) {
		return subscription{}, failure(wire.CodeInvalidParams, "Missing notifications", nil)
	}
	caps := s.capabilities(caller)
	wants := func(member, kind string) bool {
		return string(wire.Get(want, member)) == "true" && string(wire.Get(caps, kind, "listChanged")) == "true"
	}
	// What outlives the request must not hold on to its body.
	caller.Client, caller.Capabilities = bytes.Clone(caller.Client), bytes.Clone(caller.Capabilities)
	w := newWatcher(caller, bytes.Clone(m.ID), changes{
		tools:     wants("toolsListChanged", "tools"),
		prompts:   wants("promptsListChanged", "prompts"),
		resources: wants("resourcesListChanged", "resources"),
	})
	sub := subscription{watcher: w}
	remove := s.watchers.add(w)
	var uris []string
	if string(wire.Get(caps, "resources", "subscribe")) == "true" {
		uris = s.subscribeAll(ctx, w, wire.Get(want, "resourceSubscriptions"))
	}
	tasks, err := s.watchTasks(ctx, w, wire.Get(want, "taskIds"))
	sub.end = func() {
		remove()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unwatchTime)
		defer cancel()
		if len(uris) > 0 {
			s.outlives(s.deck.Unsubscribe(ctx, caller, uris...))
		}
		for _, id := range tasks {
			s.outlives(s.deck.(taskDeck).UnwatchTask(ctx, caller, id))
		}
	}
	if err != nil {
		sub.end()
		return subscription{}, s.failed(ctx, caller, m.Method, m.Params, err)
	}
	sub.agreed = agreed(w.lists, uris, tasks)
	sub.nothing = w.lists == (changes{}) && len(uris) == 0 && len(tasks) == 0
	return sub, reply{}
}

func (s *Server) outlives(err error) {
	if err != nil {
		s.log.Warn("a subscription outlives its listener", "err", err)
	}
}

// A taskDeck is a deck with tasks that can be watched.
type taskDeck interface {
	WatchTask(ctx context.Context, caller drawbridge.Caller, id string) error
	UnwatchTask(ctx context.Context, caller drawbridge.Caller, id string) error
}

var _ taskDeck = (*deck.Deck)(nil)

// watchTasks watches those of the tasks that the caller may ask after, and gives them. The error is for a caller who did
// not say that they know of tasks: SEP-2663 has all of the request refused then.
func (s *Server) watchTasks(ctx context.Context, w *watcher, wanted json.RawMessage) (ids []string, err error) {
	d, ok := s.deck.(taskDeck)
	if !ok {
		return nil, nil
	}
	for raw := range wire.Elements(wanted) {
		id, ok := wire.Text(raw)
		if !ok || w.tasks[id] {
			continue
		}
		if !w.watchTask(id) {
			break
		}
		if err := d.WatchTask(ctx, w.caller, id); err != nil {
			w.forgetTask(id) // what is not in the acknowledgement is not watched
			if f := drawbridge.AsFault(err); wire.ErrorCode(f.Raw) == wire.CodeMissingCapability {
				return ids, err
			}
			continue
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// unwatchTime bounds what the end of a listener waits for.
const unwatchTime = 5 * time.Second

// subscribeAll subscribes to those of the URIs that can be watched, and gives them.
func (s *Server) subscribeAll(ctx context.Context, w *watcher, wanted json.RawMessage) (uris []string) {
	for raw := range wire.Elements(wanted) {
		uri, ok := wire.Text(raw)
		if !ok || w.uris[uri] {
			continue
		}
		if !w.watch(uri) {
			break
		}
		uris = append(uris, uri)
	}
	if len(uris) == 0 {
		return nil
	}
	all := drawbridge.Watched{URIs: uris}
	if err := s.deck.Subscribe(ctx, w.caller, uris...); err != nil {
		not := all
		if some, ok := errors.AsType[*drawbridge.UnwatchedError](err); ok {
			not = some.What
		}
		for _, uri := range not.URIs {
			w.forget(uri) // what is not in the acknowledgement is not watched
		}
		all = all.Without(not)
	}
	return all.URIs
}

func agreed(lists changes, uris, tasks []string) json.RawMessage {
	out := json.RawMessage(`{}`)
	yes := json.RawMessage(`true`)
	if lists.tools {
		out = wire.Apply(out, wire.Put(yes, "toolsListChanged"))
	}
	if lists.prompts {
		out = wire.Apply(out, wire.Put(yes, "promptsListChanged"))
	}
	if lists.resources {
		out = wire.Apply(out, wire.Put(yes, "resourcesListChanged"))
	}
	if len(uris) > 0 {
		out = wire.Apply(out, wire.Put(wire.AppendTexts(nil, uris...), "resourceSubscriptions"))
	}
	if len(tasks) > 0 {
		out = wire.Apply(out, wire.Put(wire.AppendTexts(nil, tasks...), "taskIds"))
	}
	return out
}

// acknowledgement is the first message of the stream, farewell the answer to the request when we end it.
func (sub subscription) acknowledgement() []byte {
	return sub.watcher.message(wire.NoteListenAck, wire.Apply(nil, wire.Put(sub.agreed, "notifications")))
}

func (s *Server) farewell(sub subscription) reply {
	meta := append([]byte(`{"resultType":"complete","_meta":{"`+wire.MetaSubscriptionID+`":`), sub.watcher.tag...)
	meta = append(append(meta, `,"`+wire.MetaServerInfo+`":`...), s.info...)
	return result(append(meta, '}', '}'))
}

// listen answers subscriptions/listen over HTTP: a stream that ends with its client, or with us.
func (d *door) listen(x *exchange, caller drawbridge.Caller, m wire.Message) {
	if !x.stream {
		x.answer(m.ID, http.StatusNotAcceptable, failure(wire.CodeInvalidRequest, "The answer is a stream of events", nil))
		return
	}
	sub, refusal := d.s.subscription(x.r.Context(), caller, m)
	if !refusal.isNone() {
		x.answer(m.ID, statusOf(refusal), refusal)
		return
	}
	defer sub.end()
	out := x.direct()
	if out(event(sub.acknowledgement())) != nil {
		return
	}
	if sub.nothing || d.stream(x.r.Context(), nil, sub.watcher, out) {
		_ = out(event(d.s.farewell(sub).line(sub.watcher.tag))) // gone is gone
	}
}
