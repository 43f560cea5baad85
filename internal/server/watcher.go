package server

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// maxNotices is the most notices that wait for one watcher, and maxNoticeBytes the bytes from which on no more wait;
// further ones are dropped.
const (
	maxNotices     = 128
	maxNoticeBytes = 256 << 10
)

// A watcher collects events outside calls for a stateful session or a subscriptions/listen request. It holds state, not
// a queue: after any number of events, a list has changed once and a resource was updated once.
type watcher struct {
	// listenID is the id of the listen request, which each of its notifications carries; nil for a session.
	listenID json.RawMessage
	// wake holds one token: there is something to take.
	wake chan struct{}

	mu sync.Mutex
	// caller is who hears, with the rights they hold now.
	caller drawbridge.Caller
	// lists, uris and tasks select the list changes, resources and tasks; notices selects all other notifications.
	// reader reports that a reader is attached.
	lists        listChanges
	uris, tasks  map[string]bool
	keepsNotices bool
	hasReader    bool
	// level is the least severe log line to hear; empty hears all.
	level string

	changed listChanges
	updated map[string]json.RawMessage
	// taskStates holds the last reported state of each task.
	taskStates     map[string]json.RawMessage
	pendingNotices []drawbridge.ServerNotification
	noticeBytes    int // the bytes of noticed
	// mustSend are whole messages that must arrive: requests of a server outside calls.
	mustSend [][]byte
}

// listChanges names the lists that changed.
type listChanges struct{ tools, prompts, resources bool }

func newWatcher(caller drawbridge.Caller, tag json.RawMessage, lists listChanges) *watcher {
	return &watcher{caller: caller, listenID: tag, lists: lists, wake: make(chan struct{}, 1)}
}

// addEvent takes in an event, where it is one that the watcher wants.
func (w *watcher) addEvent(e deck.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !e.VisibleTo(w.caller) {
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
			w.updated[e.URI] = e.Notification.Params
		}
	case deck.ServerNotified:
		if w.wantsNotice(e.Notification) {
			w.addNotice(e.Notification)
		}
	case deck.TaskChanged:
		w.addTaskChange(e)
	}
	if w.changed != (listChanges{}) || len(w.updated) > 0 || len(w.taskStates) > 0 || len(w.pendingNotices) > 0 {
		w.wakeReader()
	}
}

// setCaller sets the caller whose rights apply from now on.
func (w *watcher) setCaller(caller drawbridge.Caller) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.caller = caller
}

// addTaskChange records a task's change: for a listener that of a task it listens to, for a session that of any task of
// its principal. The form is that of the watcher's protocol generation. The caller holds the lock.
func (w *watcher) addTaskChange(e deck.Event) {
	switch n := e.Notification; {
	case w.tasks[e.Task] && n.Method == mcp.NoteTask:
		if w.taskStates == nil {
			w.taskStates = map[string]json.RawMessage{}
		}
		w.taskStates[e.Task] = n.Params
	case w.listenID == nil && n.Method == mcp.NoteTaskStatus:
		w.addNotice(n)
	}
}

// addNotice keeps a notice if the watcher wants it and has room. The caller holds the lock.
func (w *watcher) addNotice(n drawbridge.ServerNotification) {
	if w.keepsNotices && len(w.pendingNotices) < maxNotices && w.noticeBytes < maxNoticeBytes {
		w.pendingNotices = append(w.pendingNotices, n)
		w.noticeBytes += len(n.Params)
	}
}

// wakeReader signals that there is something to take.
func (w *watcher) wakeReader() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// send adds a whole message that must arrive. The error is errCallerGone if there is no reader, or none that keeps up.
func (w *watcher) send(message []byte, _ bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.hasReader || len(w.mustSend) == maxNotices {
		return errCallerGone
	}
	w.mustSend = append(w.mustSend, message)
	w.wakeReader()
	return nil
}

// done is never closed: the reader may come back.
func (w *watcher) done() <-chan struct{} { return nil }

var _ sender = (*watcher)(nil)

func (w *watcher) wantsNotice(n drawbridge.ServerNotification) bool {
	return n.Method != mcp.NoteMessage || levelAdmits(w.level, n.Params)
}

// setLevel sets the least severe log line to hear.
func (w *watcher) setLevel(level string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.level = level
}

// wantsLog reports whether the watcher wants a log line.
func (w *watcher) wantsLog(params json.RawMessage) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return levelAdmits(w.level, params)
}

// watchResource and forgetResource select and deselect updates of a resource. watchResource reports false if there
// would be too many.
func (w *watcher) watchResource(uri string) bool {
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

func (w *watcher) forgetResource(uri string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.uris, uri)
	delete(w.updated, uri)
}

// watchTask and forgetTask select and deselect a task. watchTask reports false if there would be too many.
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
	delete(w.taskStates, id)
}

// maxWatched is how many resources one watcher may watch, and how many tasks.
const maxWatched = 1024

// attachReader attaches a reader for notices. Before the first one they are not kept.
func (w *watcher) attachReader() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keepsNotices, w.hasReader = true, true
}

// detachReader detaches the reader. With back, notices are kept until it returns.
func (w *watcher) detachReader(back bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hasReader = false
	if w.keepsNotices = back; !back {
		w.pendingNotices, w.mustSend, w.noticeBytes = nil, nil, 0
	}
}

// takeNotifications returns the due notifications, each a whole message.
func (w *watcher) takeNotifications() [][]byte {
	w.mu.Lock()
	changed, updated, progressed, noticed, due := w.changed, w.updated, w.taskStates, w.pendingNotices, w.mustSend
	w.changed, w.updated, w.taskStates, w.pendingNotices, w.mustSend, w.noticeBytes = listChanges{}, nil,
		nil, nil, nil, 0
	w.mu.Unlock()
	add := func(method string, params json.RawMessage) { due = append(due, w.encodeNotification(method, params)) }
	for _, n := range noticed {
		add(n.Method, n.Params)
	}
	if changed.tools {
		add(mcp.NoteToolsChanged, nil)
	}
	if changed.prompts {
		add(mcp.NotePromptsChanged, nil)
	}
	if changed.resources {
		add(mcp.NoteResourcesChanged, nil)
	}
	for _, uri := range slices.Sorted(maps.Keys(updated)) {
		params := updated[uri]
		if params == nil {
			params = rawjson.Apply(nil, rawjson.Put(rawjson.Quote(uri), "uri"))
		}
		add(mcp.NoteResourceUpdated, params)
	}
	for _, id := range slices.Sorted(maps.Keys(progressed)) {
		add(mcp.NoteTask, progressed[id])
	}
	return due
}

// requeue puts messages back before all others.
func (w *watcher) requeue(due [][]byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mustSend = append(due, w.mustSend...)
	w.wakeReader()
}

// encodeNotification writes a notification for this watcher.
func (w *watcher) encodeNotification(method string, params json.RawMessage) []byte {
	if w.listenID != nil {
		params = rawjson.Apply(params, rawjson.Put(w.listenID, "_meta", mcp.MetaSubscriptionID))
	}
	return mcp.Message{Method: method, Params: params}.Append(nil)
}

// watcherSet are all that want to hear of events.
type watcherSet struct {
	mu  sync.Mutex
	all map[*watcher]struct{}
}

func (w *watcherSet) add(one *watcher) (remove func()) {
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

// broadcast passes an event on. It does not block: no watcher does more than remember it.
func (w *watcherSet) broadcast(e deck.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.all {
		one.addEvent(e)
	}
}
