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

// maxNotices is the maximum number of queued notifications of a watcher. A notification is dropped if the queue
// contains maxNotices notifications, or notifications of maxNoticeBytes bytes or more.
const (
	maxNotices     = 128
	maxNoticeBytes = 256 << 10
)

// A watcher collects events outside calls for a stateful session or a subscriptions/listen request, until a reader
// takes them. Changes of lists, resources and tasks are not queued but merged: after several changes of one item the
// reader gets one notification.
type watcher struct {
	// listenID is the id of the listen request, which is part of each of its notifications; nil for a session.
	listenID json.RawMessage
	// wake holds one value when there are notifications to take.
	wake chan struct{}

	mu sync.Mutex
	// caller is the receiver of the notifications, with its current rights. Events that it may not see are ignored.
	caller drawbridge.Caller
	// lists, uris and tasks select the lists, resources and tasks whose changes are collected. keepsNotices is set if
	// other notifications are queued too. hasReader reports whether a reader is attached.
	lists        listChanges
	uris, tasks  map[string]bool
	keepsNotices bool
	hasReader    bool
	// level is the minimum level of log messages to send; empty sends all.
	level string

	changed listChanges
	updated map[string]json.RawMessage
	// taskStates holds the last reported state of each task that has changed.
	taskStates     map[string]json.RawMessage
	pendingNotices []drawbridge.ServerNotification
	noticeBytes    int // the size of pendingNotices
	// mustSend are encoded messages that must arrive: requests that a server sent outside calls, and messages that the
	// reader returned.
	mustSend [][]byte
}

// listChanges is a set of lists: the lists that changed, or the lists to watch.
type listChanges struct{ tools, prompts, resources bool }

func newWatcher(caller drawbridge.Caller, tag json.RawMessage, lists listChanges) *watcher {
	return &watcher{caller: caller, listenID: tag, lists: lists, wake: make(chan struct{}, 1)}
}

// addEvent stores an event, if the watcher's caller may see the event and the watcher collects events of that kind.
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

// setCaller sets the caller. Its rights apply to later events.
func (w *watcher) setCaller(caller drawbridge.Caller) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.caller = caller
}

// addTaskChange stores the change of a task, in the form of the watcher's protocol generation. A listen request
// receives the changes of the tasks that it watches. A session receives the changes of all tasks of its principal. The
// caller must hold the lock.
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

// addNotice queues a notification if keepsNotices is set and the queue has room. The caller must hold the lock.
func (w *watcher) addNotice(n drawbridge.ServerNotification) {
	if w.keepsNotices && len(w.pendingNotices) < maxNotices && w.noticeBytes < maxNoticeBytes {
		w.pendingNotices = append(w.pendingNotices, n)
		w.noticeBytes += len(n.Params)
	}
}

// wakeReader signals the reader that there are notifications to take.
func (w *watcher) wakeReader() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// send adds an encoded message that must arrive. The error is errCallerGone if no reader is attached, or if the reader
// has not taken maxNotices earlier messages.
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

// done returns nil, because the reader may reconnect; see the interface sender.
func (w *watcher) done() <-chan struct{} { return nil }

var _ sender = (*watcher)(nil)

func (w *watcher) wantsNotice(n drawbridge.ServerNotification) bool {
	return n.Method != mcp.NoteMessage || levelAdmits(w.level, n.Params)
}

// setLevel sets the minimum level of log messages to send.
func (w *watcher) setLevel(level string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.level = level
}

// wantsLog reports whether a log message has at least the watcher's level.
func (w *watcher) wantsLog(params json.RawMessage) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return levelAdmits(w.level, params)
}

// watchResource and forgetResource begin and end watching a resource. watchResource returns false if the watcher
// already watches maxWatched resources.
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

// watchTask and forgetTask begin and end watching a task. watchTask returns false if the watcher already watches
// maxWatched tasks.
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

// maxWatched is the maximum number of resources, and also the maximum number of tasks, that one watcher may watch.
const maxWatched = 1024

// attachReader attaches a reader. Before the first reader is attached, only changes of lists, resources and tasks are
// stored, and other notifications are dropped.
func (w *watcher) attachReader() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keepsNotices, w.hasReader = true, true
}

// detachReader detaches the reader. If back is set, notifications are queued until the reader returns. Otherwise the
// queue is emptied, and later notifications are dropped.
func (w *watcher) detachReader(back bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hasReader = false
	if w.keepsNotices = back; !back {
		w.pendingNotices, w.mustSend, w.noticeBytes = nil, nil, 0
	}
}

// takeNotifications removes and returns all pending notifications, each as an encoded message.
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

// requeue stores messages again that the reader has taken but not written. The next takeNotifications returns them
// first.
func (w *watcher) requeue(due [][]byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mustSend = append(due, w.mustSend...)
	w.wakeReader()
}

// encodeNotification encodes a notification as a message. For a listen request, it adds the request's id to the
// notification.
func (w *watcher) encodeNotification(method string, params json.RawMessage) []byte {
	if w.listenID != nil {
		params = rawjson.Apply(params, rawjson.Put(w.listenID, "_meta", mcp.MetaSubscriptionID))
	}
	return mcp.Message{Method: method, Params: params}.Append(nil)
}

// watcherSet is the set of all watchers that receive events.
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

// broadcast passes an event to all watchers. It does not block, because watchers only store the event.
func (w *watcherSet) broadcast(e deck.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.all {
		one.addEvent(e)
	}
}
