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

// listenerOptions are what an ear needs; all of them but Settle and Missed must be there.
type listenerOptions struct {
	// Listen sends a request to be told of the changes of all lists, and of what is watched, and waits for its end. The
	// error of a request that the server refused is a *transport.ResponseError.
	Listen func(ctx context.Context, w drawbridge.WatchSet, in transport.Handler) error
	// Handler hears what the server says.
	Handler transport.Handler
	// TellsListChanges says that the server tells when its lists change.
	TellsListChanges bool
	// AwaitProcessed is for a server that forgets all that its connection listens to when one request ends, as the
	// reference servers do on a pipe: there the old request ends before the new one begins, and Settle waits until it
	// has.
	AwaitProcessed func(ctx context.Context)
	// Wanted gives what is watched, and counts how often that has changed.
	Wanted func() (w drawbridge.WatchSet, turn int)
	// OnApplied is told that the server knows of a turn but for what it refused, and how much of that is given up.
	OnApplied func(turn int, refused watchRefusals, gone drawbridge.WatchSet)
	// OnMissed is told that lists may have changed unheard.
	OnMissed func()
	// IsOver says that the connection is.
	IsOver func() bool
	// Logger is told of what nobody else hears of.
	Logger *slog.Logger
}

// listenAckTimeout is how long a server has to say yes or no to a request.
const listenAckTimeout = 10 * time.Second

const (
	// The pauses between requests that end double from the first to the last; one that was open as long as stayed
	// counts as the first.
	minRelistenPause = 500 * time.Millisecond
	maxRelistenPause = 60 * time.Second
	stableListenAge  = time.Minute
)

// An changeListener listens to one server. Its methods are for one goroutine.
type changeListener struct {
	o      listenerOptions
	ctx    context.Context
	cancel context.CancelFunc
	// updateSignal has it look at what is wanted.
	updateSignal chan struct{}
	work         sync.WaitGroup
	begun        bool

	// The rest is its goroutine's. now is the request that is open, nil where there is none; taken is what the server
	// last said yes to, once it was heard.
	current      *listenRequest
	accepted     drawbridge.WatchSet
	acceptedOnce bool
	// refusesLists says that the server does not listen even for changes of its lists.
	refusesLists bool
}

// newChangeListener makes an ear that listens from the first Turn on, until ctx ends or Stop.
func newChangeListener(ctx context.Context, o listenerOptions) *changeListener {
	r := &changeListener{o: o, updateSignal: make(chan struct{}, 1)}
	r.ctx, r.cancel = context.WithCancel(ctx)
	return r
}

// update has the ear look at what is wanted.
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

// stop ends the listening, and waits for the end.
func (r *changeListener) stop() {
	r.cancel()
	r.work.Wait()
}

// listenLoop listens until its end or the session's. What a server answers with an error that may pass, or ends by
// itself, is begun again after a pause.
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
			r.o.Logger.Debug("a server stopped telling of its changes", "error", r.current.err)
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

// applyWanted has the server tell of what is wanted, as far as it will. It says false where another attempt is due
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
			r.o.OnApplied(turn, refused, drawbridge.WatchSet{}) // it refuses everything just now
			return false
		case left.IsEmpty():
			r.refusesLists = true
			r.o.Logger.Info("a server does not tell of its changes", "error", err)
		default:
			refused = append(refused, r.attributeRefusal(left, err)...)
		}
	}
}

// reportApplied says that the server knows of a turn. It gives false where some of it is worth another attempt.
func (r *changeListener) reportApplied(turn int, refused watchRefusals) (complete bool) {
	final := refused.finalOnes()
	r.o.OnApplied(turn, refused, final.watchSet())
	return len(final) == len(refused)
}

func sameWatchSet(a, b drawbridge.WatchSet) bool {
	return a.Without(b).IsEmpty() && b.Without(a).IsEmpty()
}

var errNotAcknowledged = &drawbridge.Fault{
	Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound, Step: "the server does not let this be watched",
}

// replaceRequest puts a request in the place of the one before. The lists are asked for again, and where there was a
// time without either request, what is watched counts as updated: nobody knows what was missed.
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

// attributeRefusal says what of a refused request it is refused for: of what is new since the last yes, if there is
// anything.
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

// refusesEverything says whether a server that gave an error which may pass refuses what nobody could object to as
// well.
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

// bisectRefused asks for ever smaller parts of what is refused with err together, and gives what is refused by itself.
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

// openRequest begins a request, and waits until the server says yes or no.
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
			return h, nil // it may tell all the same
		}
		h.stop()
		return nil, context.DeadlineExceeded
	}
	select {
	case <-h.acked:
		return h, nil // it is over already: that is seen to later
	default:
		return nil, cmp.Or(h.err, errEndedUnacknowledged)
	}
}

var errEndedUnacknowledged = errors.New("the server ended the request at once")

// closeRequest ends the request that is open.
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
	// acked is closed when the server has said that it listens; not is what it leaves out.
	acked    chan struct{}
	ackOnce  sync.Once
	rejected drawbridge.WatchSet
	// done is closed when it has ended, with err where the server or the connection ended it wrongly.
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

// HandleNotification passes on what the server says, but for the first: that it listens, and to what of it.
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

// HandleRequest is not for a server that speaks by a listening request.
func (h *listenRequest) HandleRequest(ctx context.Context, method string, params json.RawMessage) (result,
	errorObject json.RawMessage) {
	return h.handler.HandleRequest(ctx, method, params)
}

// unacknowledgedResources gives what an acknowledgement leaves out. Of tasks it need not speak: they are an
// extension's.
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
