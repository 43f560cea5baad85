package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/hop"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// watchTimeout bounds one request to watch something.
const watchTimeout = 10 * time.Second

// A watch is what of a server is watched.
type watch struct {
	wanted drawbridge.Watched
	// turn counts what was wanted; applied is the last turn that the server knows of, or err says why not.
	turn, applied int
	err           error
	// moved is closed and made anew when applied grows.
	moved chan struct{}
}

func newWatch() watch { return watch{moved: make(chan struct{})} }

// Watch says what of a server is watched: w is all of it, none ends it. It waits until the server has taken note; the watch
// is established again whenever the server was away. A server of the legacy generation tells of its tasks unasked. The
// error is a *drawbridge.Fault.
func (f *Fleet) Watch(ctx context.Context, id drawbridge.ServerID, w drawbridge.Watched) error {
	e, err := f.endpoint(id)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, f.o.ConnectTimeout+watchTimeout)
	defer cancel()
	step := fmt.Sprintf("watch %s", id)
	e.mu.Lock()
	e.watch.wanted = drawbridge.Watched{URIs: slices.Clone(w.URIs), Tasks: slices.Clone(w.Tasks)}
	e.watch.turn++
	turn := e.watch.turn
	signal(e.rewatch)
	var o *opening
	home := e.sessions[e.homeKey()]
	away := home == nil || home.over()
	if away && !w.None() {
		o = e.want(e.homeKey(), nil)
	}
	e.mu.Unlock()
	if away && o == nil {
		return nil // a server that is away watches nothing
	}
	if o != nil {
		select {
		case <-o.ready:
		case <-ctx.Done():
		}
		if o.err != nil {
			return e.unavailable(step, o.err)
		}
	}
	return e.watched(ctx, step, turn)
}

// watched waits until the server knows of a turn.
func (e *endpoint) watched(ctx context.Context, step string, turn int) error {
	for {
		e.mu.Lock()
		applied, err, moved := e.watch.applied, e.watch.err, e.watch.moved
		e.mu.Unlock()
		if applied >= turn {
			if err != nil {
				return e.callFault(step, err)
			}
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return e.callFault(step, ctx.Err())
		case <-e.ctx.Done():
			return e.unavailable(step, errRemoved)
		}
	}
}

// A watcher keeps the watch of an endpoint on one session: by subscriptions, or by a listening request.
type watcher struct {
	e *endpoint
	s *session
	// subscribed is what a legacy server knows.
	subscribed map[string]bool
	// listening ends the listening request; work is its goroutine.
	listening context.CancelFunc
	work      sync.WaitGroup
	// told is closed when the server has taken note for the first time, or has refused to.
	told  chan struct{}
	first sync.Once
}

func (e *endpoint) newWatcher(s *session) *watcher {
	return &watcher{e: e, s: s, subscribed: map[string]bool{}, listening: func() {}, told: make(chan struct{})}
}

// listenFirst is how long a listing waits for the server to say that it will tell of changes.
const listenFirst = 500 * time.Millisecond

// begin has the server know what is watched, before it is listed: a change in between would be lost.
func (w *watcher) begin() {
	w.apply()
	timer := time.NewTimer(listenFirst)
	defer timer.Stop()
	select {
	case <-w.told:
	case <-timer.C: // the server need not hurry
	case <-w.e.ctx.Done():
	}
}

// stop ends the listening.
func (w *watcher) stop() {
	w.listening()
	w.work.Wait()
}

// apply has the server know what is watched, or begins to.
func (w *watcher) apply() {
	w.e.mu.Lock()
	wanted, turn := w.e.watch.wanted, w.e.watch.turn
	w.e.mu.Unlock()
	if w.s.era == drawbridge.Modern {
		w.listen(wanted, turn)
	} else {
		w.applied(turn, w.subscribe(wanted.URIs))
	}
}

var errNoSubscriptions = &drawbridge.Fault{
	Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound, Step: "the server does not let its resources be watched",
}

// applied notes that the server knows of a turn, or why it does not want to.
func (w *watcher) applied(turn int, err error) {
	w.first.Do(func() { close(w.told) })
	e := w.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if turn < e.watch.applied {
		return
	}
	e.watch.applied, e.watch.err = turn, err
	close(e.watch.moved)
	e.watch.moved = make(chan struct{})
}

// subscribe tells a legacy server the differences.
func (w *watcher) subscribe(uris []string) error {
	if !wire.Declares(wire.Get(w.s.capabilities, "resources"), "subscribe") {
		if len(uris) > 0 {
			return errNoSubscriptions
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(w.e.ctx, watchTimeout)
	defer cancel()
	var faults []error
	tell := func(method, uri string) bool {
		_, err := w.s.request(ctx, method, wire.Apply(nil, wire.Put(wire.Quote(uri), "uri")))
		if err != nil {
			faults = append(faults, err)
		}
		return err == nil
	}
	for uri := range w.subscribed {
		if !slices.Contains(uris, uri) {
			tell(wire.MethodUnsubscribe, uri)
			delete(w.subscribed, uri)
		}
	}
	for _, uri := range uris {
		if !w.subscribed[uri] && tell(wire.MethodSubscribe, uri) {
			w.subscribed[uri] = true
		}
	}
	return errors.Join(faults...)
}

// listen has a modern server tell of changes, by a request that stays open and takes the place of the one before.
func (w *watcher) listen(wanted drawbridge.Watched, turn int) {
	w.stop()
	resources := wire.Get(w.s.capabilities, "resources")
	changes := wire.Declares(wire.Get(w.s.capabilities, "tools"), "listChanged") ||
		wire.Declares(wire.Get(w.s.capabilities, "prompts"), "listChanged") || wire.Declares(resources, "listChanged")
	if !changes && wanted.None() {
		w.applied(turn, nil)
		return
	}
	var ctx context.Context
	ctx, w.listening = context.WithCancel(w.e.ctx)
	w.work.Go(func() { w.keepListening(ctx, wanted, turn) })
}

// keepListening listens until its context or the session ends, or the server refuses. After a drop the server is listed
// again: nobody knows what was missed.
func (w *watcher) keepListening(ctx context.Context, wanted drawbridge.Watched, turn int) {
	params := w.listenParams(wanted)
	pause := firstPause
	for again := false; ; again = true {
		l := &listener{s: w.s, acked: func() {
			w.applied(turn, nil)
			if again {
				signal(w.e.changed)
			}
		}}
		began := time.Now()
		m, err := w.s.conn.Do(ctx, wire.MethodListen, params, l)
		if ctx.Err() != nil || w.s.over() {
			return
		}
		if m.Error != nil {
			err = &replyError{m.Error}
		}
		if answered(err) && !codeOf(err).Retryable() {
			w.applied(turn, err)
			w.e.log.Info("a server does not tell of its changes", "error", err)
			return
		}
		w.e.log.Debug("a server stopped telling of its changes", "error", err)
		if time.Since(began) > stayed {
			pause = firstPause
		}
		timer := time.NewTimer(pause)
		pause = min(2*pause, lastPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// extensionTasks is what a client declares that hears of tasks (SEP-2663).
const extensionTasks = "io.modelcontextprotocol/tasks"

func (w *watcher) listenParams(wanted drawbridge.Watched) json.RawMessage {
	out := []byte(`{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true`)
	out = appendTexts(out, `,"resourceSubscriptions":`, wanted.URIs)
	out = appendTexts(out, `,"taskIds":`, wanted.Tasks)
	h := w.e.hop(w.s.version)
	if len(wanted.Tasks) > 0 {
		h.Capabilities = wire.Apply(h.Capabilities, wire.Put(json.RawMessage("{}"), "extensions", extensionTasks))
	}
	return hop.ToModern(wire.Apply(nil, wire.Put(append(out, '}'), "notifications")), h)
}

// appendTexts appends a member with a list of texts, where there are any.
func appendTexts(dst []byte, member string, texts []string) []byte {
	if len(texts) == 0 {
		return dst
	}
	for i, text := range texts {
		if i == 0 {
			dst = append(append(dst, member...), '[')
		} else {
			dst = append(dst, ',')
		}
		dst = wire.AppendQuoted(dst, text)
	}
	return append(dst, ']')
}

// A listener hears what comes by a listening request.
type listener struct {
	s     *session
	acked func()
}

// Notify passes on what the server says, but for the first: that it listens.
func (l *listener) Notify(method string, params json.RawMessage) {
	if method == wire.NoteListenAck {
		l.acked()
		return
	}
	l.s.Notify(method, params)
}

// Ask is not for a server that speaks by a listening request.
func (l *listener) Ask(ctx context.Context, method string, params json.RawMessage) (result, errorObject json.RawMessage) {
	return l.s.Ask(ctx, method, params)
}
