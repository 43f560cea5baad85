package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// listenerOptions configure a changeListener. Only AwaitProcessed may be nil.
type listenerOptions struct {
	// Listen sends a subscriptions/listen request for the changes of all lists and of the items in w. It passes the
	// server's messages to in. It returns when that request ends. An error response of the server is a
	// *transport.ResponseError.
	Listen func(ctx context.Context, w drawbridge.WatchSet, in transport.Handler) error
	// Handler receives the server's notifications.
	Handler transport.Handler
	// TellsListChanges reports whether the server declares that it sends notifications of list changes.
	TellsListChanges bool
	// AwaitProcessed waits until the server has processed the end of a listening request. It is set only for a server
	// that ends all listening requests of a connection when one of them ends. The reference servers do that on a pipe.
	// If AwaitProcessed is set, the old request is ended before the new request is sent.
	AwaitProcessed func(ctx context.Context)
	// Wanted returns the current watch set w and its version number turn, which grows with each change of the set.
	Wanted func() (w drawbridge.WatchSet, turn int)
	// OnApplied is called when the server has applied the watch set of the version turn. refused contains the server's
	// refusals. gone contains the items that the server refused permanently. OnApplied must remove the items in gone
	// from the watch set.
	OnApplied func(turn int, refused watchRefusals, gone drawbridge.WatchSet)
	// OnMissed is called when notifications of list changes may have been missed.
	OnMissed func()
	// IsOver reports whether the connection has ended.
	IsOver func() bool
	// Logger receives events that are reported nowhere else.
	Logger *slog.Logger
}

// listenAckTimeout is how long a server has to acknowledge or refuse a listening request.
const listenAckTimeout = 10 * time.Second

const (
	// The pause between the end of a listening request and the next request doubles from minRelistenPause to
	// maxRelistenPause. After a request that was open for longer than stableListenAge, the pause is minRelistenPause
	// again.
	minRelistenPause = 500 * time.Millisecond
	maxRelistenPause = 60 * time.Second
	stableListenAge  = time.Minute
)

// A changeListener keeps one listening request open at a stateless server, and replaces the request when the watch set
// changes. It leaves out the items that the server refuses, so that the server accepts the request for the other items.
// The old request stays open until the server has acknowledged the new request, unless AwaitProcessed is set. If the
// server refuses the new request, the old request stays. After a period without an open request, the listener reports
// all watched resources as updated, since it may have missed notifications. The methods must be called from one
// goroutine.
type changeListener struct {
	o      listenerOptions
	ctx    context.Context
	cancel context.CancelFunc
	// updateSignal makes listenLoop read Wanted.
	updateSignal chan struct{}
	work         sync.WaitGroup
	begun        bool

	// Only listenLoop uses the fields below. current is the open request, or nil. accepted is the last watch set that
	// the server acknowledged.
	current      *listenRequest
	accepted     drawbridge.WatchSet
	acceptedOnce bool
	// refusesLists is set if the server refuses to listen even for list changes.
	refusesLists bool
}

// newChangeListener returns a listener that starts at the first call of update. It runs until ctx ends or stop is
// called.
func newChangeListener(ctx context.Context, o listenerOptions) *changeListener {
	r := &changeListener{o: o, updateSignal: make(chan struct{}, 1)}
	r.ctx, r.cancel = context.WithCancel(ctx)
	return r
}

// update makes the listener apply the current result of Wanted, and does not wait for that. The first call starts the
// listener.
func (r *changeListener) update() {
	select {
	case r.updateSignal <- struct{}{}:
	default:
	}
	if !r.begun {
		r.begun = true
		r.work.Go(r.listenLoop)
	}
}

// stop ends the open request and waits until the listener's goroutines have ended.
func (r *changeListener) stop() {
	r.cancel()
	r.work.Wait()
}

// listenLoop keeps a listening request open until stop or the end of the session. After a retryable error, or when the
// server ends the request, listenLoop sends a new request after a pause.
func (r *changeListener) listenLoop() {
	defer func() {
		if r.current != nil {
			r.current.stop()
		}
	}()
	pause := minRelistenPause
	for {
		complete := r.applyWanted()
		if r.ctx.Err() != nil || r.o.IsOver() {
			return
		}
		var over <-chan struct{}
		if r.current != nil {
			over = r.current.done
		}
		if complete {
			select {
			case <-r.updateSignal:
				continue
			case <-r.ctx.Done():
				return
			case <-over:
			}
			if time.Since(r.current.began) > stableListenAge {
				pause = minRelistenPause
			}
			r.o.Logger.Debug("a listening request ended", "error", r.current.err)
			r.current.stop()
			r.current = nil
		}
		timer := time.NewTimer(pause)
		pause = min(2*pause, maxRelistenPause)
		select {
		case <-timer.C:
		case <-r.updateSignal:
		case <-r.ctx.Done():
		}
		timer.Stop()
	}
}

// applyWanted replaces the open request by a request for the wanted watch set, without the items that the server
// refuses. It returns false if it must be called again later, because a refusal may be temporary.
func (r *changeListener) applyWanted() (complete bool) {
	wanted, turn := r.o.Wanted()
	var refused watchRefusals
	for {
		left := wanted.Without(refused.watchSet())
		switch {
		case r.current != nil && sameWatchSet(left, r.accepted):
			return r.reportApplied(turn, refused)
		case left.IsEmpty() && (r.refusesLists || !r.o.TellsListChanges):
			r.closeRequest()
			r.accepted = drawbridge.WatchSet{}
			return r.reportApplied(turn, refused)
		}
		h, err := r.openRequest(left)
		switch {
		case r.ctx.Err() != nil || r.o.IsOver():
			return false
		case err == nil:
			r.replaceRequest(h, left)
			if not := left.Without(r.accepted); !not.IsEmpty() {
				refused = append(refused, watchRefusal{drawbridge.UnwatchedError{Unwatched: not,
					Err: errNotAcknowledged}, true})
			}
		case left.IsEmpty() && classifyListenError(err).retryable:
			r.o.OnApplied(turn, refused, drawbridge.WatchSet{}) // at present the server refuses every request
			return false
		case left.IsEmpty():
			r.refusesLists = true
			r.o.Logger.Info("a server refuses to notify of list changes", "error", err)
		default:
			refused = append(refused, r.attributeRefusal(left, err)...)
		}
	}
}

// reportApplied calls OnApplied for the version turn of the watch set. It returns false if a refusal is not final, so
// that another attempt may succeed.
func (r *changeListener) reportApplied(turn int, refused watchRefusals) (complete bool) {
	final := refused.finalOnes()
	r.o.OnApplied(turn, refused, final.watchSet())
	return len(final) == len(refused)
}

func sameWatchSet(a, b drawbridge.WatchSet) bool {
	return a.Without(b).IsEmpty() && b.Without(a).IsEmpty()
}

var errNotAcknowledged = &drawbridge.Fault{
	Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound, Step: "the server does not support watching this",
}

// replaceRequest makes h the open request and ends the former request. Except for the first request, it calls OnMissed,
// so that the lists are read again. If there was a period without an open request, it reports the watched resources as
// updated.
func (r *changeListener) replaceRequest(h *listenRequest, asked drawbridge.WatchSet) {
	before := r.accepted
	gap := r.current == nil
	if !gap {
		r.current.stop()
	}
	r.current, r.accepted = h, asked.Without(h.rejected)
	if !r.acceptedOnce {
		r.acceptedOnce = true
		return
	}
	r.o.OnMissed()
	if gap {
		for _, uri := range r.accepted.Intersect(before).URIs {
			h.handler.HandleNotification(mcp.NoteResourceUpdated,
				rawjson.Apply(nil, rawjson.Put(rawjson.Quote(uri), "uri")))
		}
	}
}

// attributeRefusal finds the items of the watch set asked because of which the server refused it with err. It returns a
// refusal for each item. It examines only the items that are new since the last acknowledged request; if there are
// none, it examines all items. If it cannot find the refused items, it returns one refusal of all examined items.
func (r *changeListener) attributeRefusal(asked drawbridge.WatchSet, err error) watchRefusals {
	suspects := asked.Without(r.accepted)
	if suspects.IsEmpty() {
		suspects = asked
	}
	all := watchRefusals{newWatchRefusal(suspects, err)}
	if a := classifyListenError(err); !a.fromServer || a.unsupported || r.refusesEverything(err) {
		return all
	}
	if found := r.bisectRefused(suspects, err); len(found) > 0 {
		return found
	}
	return all
}

// refusesEverything reports whether the server refuses even a request for an empty watch set. It sends such a request
// only if err is retryable and the server declares notifications of list changes. Otherwise it returns false.
func (r *changeListener) refusesEverything(err error) bool {
	if !classifyListenError(err).retryable || !r.o.TellsListChanges {
		return false
	}
	h, err := r.openRequest(drawbridge.WatchSet{})
	if err == nil {
		h.stop()
		r.awaitProcessed()
	}
	return err != nil
}

// bisectRefused finds the items because of which the server refused the watch set suspects with err. It sends a request
// for each half of the set, and examines each refused half in the same way.
func (r *changeListener) bisectRefused(suspects drawbridge.WatchSet, err error) (found watchRefusals) {
	if len(suspects.URIs)+len(suspects.Tasks) == 1 {
		return watchRefusals{newWatchRefusal(suspects, err)}
	}
	uris, tasks := len(suspects.URIs)/2, (len(suspects.Tasks)+len(suspects.URIs)%2)/2
	for _, half := range []drawbridge.WatchSet{
		{URIs: suspects.URIs[:uris], Tasks: suspects.Tasks[:tasks]}, {URIs: suspects.URIs[uris:],
			Tasks: suspects.Tasks[tasks:]},
	} {
		h, err := r.openRequest(half)
		switch {
		case r.ctx.Err() != nil || r.o.IsOver():
			return nil
		case err != nil:
			found = append(found, r.bisectRefused(half, err)...)
		default:
			h.stop()
			r.awaitProcessed()
		}
	}
	return found
}

// openRequest starts a listening request and waits until the server acknowledges or refuses it.
func (r *changeListener) openRequest(wanted drawbridge.WatchSet) (*listenRequest, error) {
	if r.o.AwaitProcessed != nil {
		r.closeRequest()
	}
	h := r.startRequest(wanted)
	timer := time.NewTimer(listenAckTimeout)
	defer timer.Stop()
	select {
	case <-h.acked:
		return h, nil
	case <-h.done:
	case <-timer.C:
		if wanted.IsEmpty() {
			return h, nil // the server may send notifications without an acknowledgement
		}
		h.stop()
		return nil, context.DeadlineExceeded
	}
	select {
	case <-h.acked:
		return h, nil // the request has ended; listenLoop handles that
	default:
		return nil, cmp.Or(h.err, errEndedUnacknowledged)
	}
}

var errEndedUnacknowledged = errors.New("the server ended the request at once")

// closeRequest ends the open request.
func (r *changeListener) closeRequest() {
	if r.current != nil {
		r.current.stop()
		r.current = nil
		r.awaitProcessed()
	}
}

func (r *changeListener) awaitProcessed() {
	if r.o.AwaitProcessed != nil {
		r.o.AwaitProcessed(r.ctx)
	}
}

// A listenRequest is one listening request.
type listenRequest struct {
	handler transport.Handler
	cancel  context.CancelFunc
	began   time.Time
	asked   drawbridge.WatchSet
	// acked is closed when the server has acknowledged the request. rejected contains the items that are missing in the
	// acknowledgement.
	acked    chan struct{}
	ackOnce  sync.Once
	rejected drawbridge.WatchSet
	// done is closed when the request has ended. err is then the error of Listen. It is nil if the server ended the
	// request with a result.
	done chan struct{}
	err  error
}

func (r *changeListener) startRequest(wanted drawbridge.WatchSet) *listenRequest {
	h := &listenRequest{handler: r.o.Handler, began: time.Now(), asked: wanted, acked: make(chan struct{}),
		done: make(chan struct{})}
	var ctx context.Context
	ctx, h.cancel = context.WithCancel(r.ctx)
	r.work.Go(func() {
		defer close(h.done)
		defer h.cancel()
		h.err = r.o.Listen(ctx, wanted, h)
	})
	return h
}

func (h *listenRequest) stop() {
	h.cancel()
	<-h.done
}

// HandleNotification passes all notifications to the handler, except acknowledgements. The first acknowledgement closes
// acked.
func (h *listenRequest) HandleNotification(method string, params json.RawMessage) {
	if method != mcp.NoteListenAck {
		h.handler.HandleNotification(method, params)
		return
	}
	h.ackOnce.Do(func() {
		h.rejected = unacknowledgedResources(h.asked, rawjson.Get(params, "notifications"))
		close(h.acked)
	})
}

// HandleRequest passes a server request to the handler. Such a request is not expected: a server that supports
// listening requests is stateless and does not send requests.
func (h *listenRequest) HandleRequest(ctx context.Context, method string, params json.RawMessage) (result,
	errorObject json.RawMessage) {
	return h.handler.HandleRequest(ctx, method, params)
}

// unacknowledgedResources returns the requested resources that are missing in an acknowledgement. Tasks are not
// checked: they belong to an extension, and an acknowledgement may omit them.
func unacknowledgedResources(asked drawbridge.WatchSet, agreed json.RawMessage) drawbridge.WatchSet {
	if len(agreed) == 0 || len(asked.URIs) == 0 {
		return drawbridge.WatchSet{}
	}
	var uris []string
	for raw := range rawjson.Elements(rawjson.Get(agreed, "resourceSubscriptions")) {
		if uri, ok := rawjson.DecodeString(raw); ok {
			uris = append(uris, uri)
		}
	}
	return drawbridge.WatchSet{URIs: asked.URIs}.Without(drawbridge.WatchSet{URIs: uris})
}
