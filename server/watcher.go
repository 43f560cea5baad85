package server

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/server/claim"
	"github.com/drawbridge-mcp/drawbridge/server/trail"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// maxNotices is how many notices wait for one watcher, and maxNoticed from how many bytes on no more do; what comes on top
// is dropped.
const (
	maxNotices = 128
	maxNoticed = 256 << 10
)

// A watcher is someone who wants to hear what belongs to no call: a stateful session, or a subscriptions/listen. Events
// become state, not a queue: however many came, a list has changed once and a resource was updated once.
type watcher struct {
	// tag is the id of the listen request, which each of its notifications carries; nil for a session.
	tag json.RawMessage
	// wake holds one token: there is something to take.
	wake chan struct{}

	mu sync.Mutex
	// caller is who hears, with the rights they hold now.
	caller drawbridge.Caller
	// lists are the list changes to hear of, uris the resources, tasks the tasks, notices whether anything else is heard;
	// reader whether somebody is there to hear it.
	lists       changes
	uris, tasks map[string]bool
	notices     bool
	reader      bool
	// level is the least severe log line to hear; empty hears all.
	level string

	changed changes
	updated map[string]json.RawMessage
	// progressed has what each task was last said to be.
	progressed map[string]json.RawMessage
	noticed    []drawbridge.Notice
	weight     int // the bytes of noticed
	// said are whole messages that must be heard: what a server asks outside any call.
	said [][]byte
}

// changes says which lists.
type changes struct{ tools, prompts, resources bool }

func newWatcher(caller drawbridge.Caller, tag json.RawMessage, lists changes) *watcher {
	return &watcher{caller: caller, tag: tag, lists: lists, wake: make(chan struct{}, 1)}
}

// add takes in an event, where it is one that the watcher wants.
func (w *watcher) add(e deck.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !e.Concerns(w.caller) {
		return
	}
	switch e.Kind {
	case deck.ToolsChanged:
		w.changed.tools = w.lists.tools
	case deck.PromptsChanged:
		w.changed.prompts = w.lists.prompts
	case deck.ResourcesChanged:
		w.changed.resources = w.lists.resources
	case deck.ResourceUpdated:
		if w.uris[e.URI] {
			if w.updated == nil {
				w.updated = map[string]json.RawMessage{}
			}
			w.updated[e.URI] = e.Notice.Params
		}
	case deck.Noticed:
		if w.wants(e.Notice) {
			w.notice(e.Notice)
		}
	case deck.TaskChanged:
		w.taskChanged(e)
	}
	if w.changed != (changes{}) || len(w.updated) > 0 || len(w.progressed) > 0 || len(w.noticed) > 0 {
		w.ring()
	}
}

// hearAs says with which rights the caller hears from now on.
func (w *watcher) hearAs(caller drawbridge.Caller) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.caller = caller
}

// taskChanged takes in what became of a task: for a listener one that it listens to, for a session any of its principal's,
// each in the words of the watcher's own generation. The lock is held.
func (w *watcher) taskChanged(e deck.Event) {
	switch n := e.Notice; {
	case w.tasks[e.Task] && n.Method == wire.NoteTask:
		if w.progressed == nil {
			w.progressed = map[string]json.RawMessage{}
		}
		w.progressed[e.Task] = n.Params
	case w.tag == nil && n.Method == wire.NoteTaskStatus:
		w.notice(n)
	}
}

// notice keeps a notice, where somebody hears it and there is room. The lock is held.
func (w *watcher) notice(n drawbridge.Notice) {
	if w.notices && len(w.noticed) < maxNotices && w.weight < maxNoticed {
		w.noticed = append(w.noticed, n)
		w.weight += len(n.Params)
	}
}

// ring says that there is something to take.
func (w *watcher) ring() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// say has a whole message heard. The error is trail.ErrGone where there is no reader, or none who keeps up.
func (w *watcher) say(message []byte, _ bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.reader || len(w.said) == maxNotices {
		return trail.ErrGone
	}
	w.said = append(w.said, message)
	w.ring()
	return nil
}

// gone is never closed: whoever listens may come back.
func (w *watcher) gone() <-chan struct{} { return nil }

var _ voice = (*watcher)(nil)

func (w *watcher) wants(n drawbridge.Notice) bool {
	return n.Method != wire.NoteMessage || claim.Hears(w.level, n.Params)
}

// setLevel sets the least severe log line to hear.
func (w *watcher) setLevel(level string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.level = level
}

// logs says whether the watcher wants a log line.
func (w *watcher) logs(params json.RawMessage) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return claim.Hears(w.level, params)
}

// watch and forget say whether updates of a resource are wanted. watch says false where there would be too many.
func (w *watcher) watch(uri string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.uris == nil {
		w.uris = map[string]bool{}
	}
	if len(w.uris) >= maxWatched && !w.uris[uri] {
		return false
	}
	w.uris[uri] = true
	return true
}

func (w *watcher) forget(uri string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.uris, uri)
	delete(w.updated, uri)
}

// watchTask and forgetTask say whether a task is listened to. watchTask says false where there would be too many.
func (w *watcher) watchTask(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tasks == nil {
		w.tasks = map[string]bool{}
	}
	if len(w.tasks) >= maxWatched && !w.tasks[id] {
		return false
	}
	w.tasks[id] = true
	return true
}

func (w *watcher) forgetTask(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.tasks, id)
	delete(w.progressed, id)
}

// maxWatched is how many resources one watcher may watch, and how many tasks.
const maxWatched = 1024

// listen says that there is a reader for notices. Before there was one they are not kept.
func (w *watcher) listen() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notices, w.reader = true, true
}

// leave says that the reader is gone. Notices are kept for one that comes back.
func (w *watcher) leave(back bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reader = false
	if w.notices = back; !back {
		w.noticed, w.said, w.weight = nil, nil, 0
	}
}

// take gives the notifications that are due, each a whole message.
func (w *watcher) take() [][]byte {
	w.mu.Lock()
	changed, updated, progressed, noticed, due := w.changed, w.updated, w.progressed, w.noticed, w.said
	w.changed, w.updated, w.progressed, w.noticed, w.said, w.weight = changes{}, nil, nil, nil, nil, 0
	w.mu.Unlock()
	add := func(method string, params json.RawMessage) { due = append(due, w.message(method, params)) }
	for _, n := range noticed {
		add(n.Method, n.Params)
	}
	if changed.tools {
		add(wire.NoteToolsChanged, nil)
	}
	if changed.prompts {
		add(wire.NotePromptsChanged, nil)
	}
	if changed.resources {
		add(wire.NoteResourcesChanged, nil)
	}
	for _, uri := range slices.Sorted(maps.Keys(updated)) {
		params := updated[uri]
		if params == nil {
			params = wire.Apply(nil, wire.Put(wire.Quote(uri), "uri"))
		}
		add(wire.NoteResourceUpdated, params)
	}
	for _, id := range slices.Sorted(maps.Keys(progressed)) {
		add(wire.NoteTask, progressed[id])
	}
	return due
}

// giveBack has messages taken again, before all others.
func (w *watcher) giveBack(due [][]byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(due, w.said...)
	w.ring()
}

// message writes a notification for this watcher.
func (w *watcher) message(method string, params json.RawMessage) []byte {
	if w.tag != nil {
		params = wire.Apply(params, wire.Put(w.tag, "_meta", wire.MetaSubscriptionID))
	}
	return wire.Message{Method: method, Params: params}.Append(nil)
}

// watchers are all that want to hear of events.
type watchers struct {
	mu  sync.Mutex
	all map[*watcher]struct{}
}

func (w *watchers) add(one *watcher) (remove func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[*watcher]struct{}{}
	}
	w.all[one] = struct{}{}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, one)
	}
}

// tell passes an event on. It does not block: no watcher does more than remember it.
func (w *watchers) tell(e deck.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.all {
		one.add(e)
	}
}
