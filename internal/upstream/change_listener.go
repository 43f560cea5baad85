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
	// Listen sends a request for the changes of all lists and of the watch set, and waits for its end. An error
	// response of the server is a *transport.ResponseError.
	Listen func(ctx context.Context, w drawbridge.WatchSet, in transport.Handler) error
	// Handler receives the server's notifications.
	Handler transport.Handler
	// TellsListChanges reports whether the server declares that it notifies of list changes.
	TellsListChanges bool
	// AwaitProcessed is set for a server that drops all listening of a connection when one such request ends, as the
	// reference servers do on a pipe. The old request then ends before the new one begins; AwaitProcessed waits until
	// the server has processed that.
	AwaitProcessed func(ctx context.Context)
	// Wanted returns the watch set, and a version that counts its changes.
	Wanted func() (w drawbridge.WatchSet, turn int)
	// OnApplied is called when the server applied a version, with its refusals and the items that are not wanted any
	// more.
	OnApplied func(turn int, refused watchRefusals, gone drawbridge.WatchSet)
	// OnMissed is called when list changes may have been missed.
	OnMissed func()
	// IsOver reports whether the connection has ended.
	IsOver func() bool
	// Logger receives events that are reported nowhere else.
	Logger *slog.Logger
}

// listenAckTimeout is how long a server has to acknowledge or refuse a request.
const listenAckTimeout = 10 * time.Second

const (
	// Pauses between requests that end double from minRelistenPause to maxRelistenPause. A request that was open for
	// stableListenAge resets them.
	minRelistenPause = 500 * time.Millisecond
	maxRelistenPause = 60 * time.Second
	stableListenAge  = time.Minute
)

// A changeListener keeps one listening request open at a stateless server, and replaces it when the watch set changes.
// What the server refuses does not affect the rest, and no change is lost: the old request stays until the server has
// acknowledged the new one, or for good if it refuses. After a gap everything watched counts as changed. Its methods
// are for one goroutine.
type changeListener struct {
	o      listenerOptions
	ctx    context.Context
	cancel context.CancelFunc
	// updateSignal makes the loop read Wanted.
	updateSignal chan struct{}
	work         sync.WaitGroup
	begun        bool

	// The fields below belong to listenLoop. current is the open request, nil for none; accepted is the last watch set
	// that the server acknowledged.
	current      *listenRequest
	accepted     drawbridge.WatchSet
	acceptedOnce bool
	// refusesLists is set if the server refuses to listen even for list changes.
	refusesLists bool
}

// newChangeListener returns a listener that starts with the first update and runs until ctx ends or stop.
func newChangeListener(ctx context.Context, o listenerOptions) *changeListener {
	r := &changeListener{o: o, updateSignal: make(chan struct{}, 1)}
	r.ctx, r.cancel = context.WithCancel(ctx)
	return r
}

// update makes the listener apply the wanted watch set.
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

// stop ends the listening and waits for its end.
func (r *changeListener) stop() {
	r.cancel()
	r.work.Wait()
}

// listenLoop listens until stop or the end of the session. After a retryable error, or when the server ends the
// request, it begins again after a pause.
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

// applyWanted sends the wanted watch set, less what the server refuses. It returns false if another attempt is due
// later.
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
			r.o.OnApplied(turn, refused, drawbridge.WatchSet{}) // it refuses everything at the moment
			return false
		case left.IsEmpty():
			r.refusesLists = true
			r.o.Logger.Info("a server refuses to notify of list changes", "error", err)
		default:
			refused = append(refused, r.attributeRefusal(left, err)...)
		}
	}
}

// reportApplied reports a version as applied. It returns false if something refused is worth another attempt.
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

// replaceRequest replaces the open request. The lists are read again. If there was a gap without any request, the
// watched resources count as updated.
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

// attributeRefusal returns which part of a refused request caused the refusal: among what is new since the last
// acknowledgement, if anything is.
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

// refusesEverything reports whether a server with a retryable error refuses even an empty watch set.
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

// bisectRefused requests ever smaller parts of the set that was refused with err, and returns the parts that are
// refused by themselves.
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

// openRequest starts a request and waits until the server acknowledges or refuses it.
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
			return h, nil // it may notify without an acknowledgement
		}
		h.stop()
		return nil, context.DeadlineExceeded
	}
	select {
	case <-h.acked:
		return h, nil // it has ended; listenLoop handles that
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
	// acked is closed when the server has acknowledged; rejected is what it left out.
	acked    chan struct{}
	ackOnce  sync.Once
	rejected drawbridge.WatchSet
	// done is closed at the end of the request, with err if the server or the connection ended it.
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

// HandleNotification passes notifications on, except the first acknowledgement.
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

// HandleRequest passes requests on. A server that supports listening requests does not send any.
func (h *listenRequest) HandleRequest(ctx context.Context, method string, params json.RawMessage) (result,
	errorObject json.RawMessage) {
	return h.handler.HandleRequest(ctx, method, params)
}

// unacknowledgedResources returns the resources that an acknowledgement leaves out. It need not mention tasks, which
// belong to an extension.
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
