// Package ear has a server tell of its changes: a stateless one by a request that stays open, and gives way to another when
// something else is watched ([Ear]), a stateful one by a request for each resource ([Subscriptions]).
//
// It promises that what the server refuses costs the rest nothing, and that no change is lost: the old request stays until
// the server has said yes to the new one, or stays for good where it says no. Where there was neither for a moment, what is
// watched counts as changed.
package ear

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/link"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// Options are what an ear needs; all of them but Settle and Missed must be there.
type Options struct {
	// Listen sends a request to be told of the changes of all lists, and of what is watched, and waits for its end. The
	// error of a request that the server refused is a *link.ReplyError.
	Listen func(ctx context.Context, w drawbridge.Watched, in link.Handler) error
	// Handler hears what the server says.
	Handler link.Handler
	// Lists says that the server tells when its lists change.
	Lists bool
	// Settle is for a server that forgets all that its connection listens to when one request ends, as the reference
	// servers do on a pipe: there the old request ends before the new one begins, and Settle waits until it has.
	Settle func(ctx context.Context)
	// Wanted gives what is watched, and counts how often that has changed.
	Wanted func() (w drawbridge.Watched, turn int)
	// Applied is told that the server knows of a turn but for what it refused, and how much of that is given up.
	Applied func(turn int, refused Refusals, gone drawbridge.Watched)
	// Missed is told that lists may have changed unheard.
	Missed func()
	// Over says that the connection is.
	Over func() bool
	// Logger is told of what nobody else hears of.
	Logger *slog.Logger
}

// Answered is how long a server has to say yes or no to a request.
const Answered = 10 * time.Second

const (
	// The pauses between requests that end double from the first to the last; one that was open as long as stayed counts
	// as the first.
	firstPause = 500 * time.Millisecond
	lastPause  = 60 * time.Second
	stayed     = time.Minute
)

// An Ear listens to one server. Its methods are for one goroutine.
type Ear struct {
	o      Options
	ctx    context.Context
	cancel context.CancelFunc
	// turned has it look at what is wanted.
	turned chan struct{}
	work   sync.WaitGroup
	begun  bool

	// The rest is its goroutine's. now is the request that is open, nil where there is none; taken is what the server last
	// said yes to, once it was heard.
	now   *hearing
	taken drawbridge.Watched
	heard bool
	// deaf says that the server does not listen even for changes of its lists.
	deaf bool
}

// New makes an ear that listens from the first Turn on, until ctx ends or Stop.
func New(ctx context.Context, o Options) *Ear {
	r := &Ear{o: o, turned: make(chan struct{}, 1)}
	r.ctx, r.cancel = context.WithCancel(ctx)
	return r
}

// Turn has the ear look at what is wanted.
func (r *Ear) Turn() {
	select {
	case r.turned <- struct{}{}:
	default:
	}
	if !r.begun {
		r.begun = true
		r.work.Go(r.listen)
	}
}

// Stop ends the listening, and waits for the end.
func (r *Ear) Stop() {
	r.cancel()
	r.work.Wait()
}

// listen listens until its end or the session's. What a server answers with an error that may pass, or ends by itself, is
// begun again after a pause.
func (r *Ear) listen() {
	defer func() {
		if r.now != nil {
			r.now.stop()
		}
	}()
	pause := firstPause
	for {
		complete := r.arrange()
		if r.ctx.Err() != nil || r.o.Over() {
			return
		}
		var over <-chan struct{}
		if r.now != nil {
			over = r.now.over
		}
		if complete {
			select {
			case <-r.turned:
				continue
			case <-r.ctx.Done():
				return
			case <-over:
			}
			if time.Since(r.now.began) > stayed {
				pause = firstPause
			}
			r.o.Logger.Debug("a server stopped telling of its changes", "error", r.now.err)
			r.now.stop()
			r.now = nil
		}
		timer := time.NewTimer(pause)
		pause = min(2*pause, lastPause)
		select {
		case <-timer.C:
		case <-r.turned:
		case <-r.ctx.Done():
		}
		timer.Stop()
	}
}

// arrange has the server tell of what is wanted, as far as it will. It says false where another attempt is due later.
func (r *Ear) arrange() (complete bool) {
	wanted, turn := r.o.Wanted()
	var refused Refusals
	for {
		left := wanted.Without(refused.What())
		switch {
		case r.now != nil && same(left, r.taken):
			return r.done(turn, refused)
		case left.None() && (r.deaf || !r.o.Lists):
			r.hush()
			r.taken = drawbridge.Watched{}
			return r.done(turn, refused)
		}
		h, err := r.ask(left)
		switch {
		case r.ctx.Err() != nil || r.o.Over():
			return false
		case err == nil:
			r.take(h, left)
			if not := left.Without(r.taken); !not.None() {
				refused = append(refused, Refusal{drawbridge.UnwatchedError{What: not, Err: errNotAgreed}, true})
			}
		case left.None() && answerOf(err).mayPass:
			r.o.Applied(turn, refused, drawbridge.Watched{}) // it refuses everything just now
			return false
		case left.None():
			r.deaf = true
			r.o.Logger.Info("a server does not tell of its changes", "error", err)
		default:
			refused = append(refused, r.blame(left, err)...)
		}
	}
}

// done says that the server knows of a turn. It gives false where some of it is worth another attempt.
func (r *Ear) done(turn int, refused Refusals) (complete bool) {
	final := refused.Final()
	r.o.Applied(turn, refused, final.What())
	return len(final) == len(refused)
}

func same(a, b drawbridge.Watched) bool { return a.Without(b).None() && b.Without(a).None() }

var errNotAgreed = &drawbridge.Fault{
	Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound, Step: "the server does not let this be watched",
}

// take puts a request in the place of the one before. The lists are asked for again, and where there was a time without
// either request, what is watched counts as updated: nobody knows what was missed.
func (r *Ear) take(h *hearing, asked drawbridge.Watched) {
	before := r.taken
	gap := r.now == nil
	if !gap {
		r.now.stop()
	}
	r.now, r.taken = h, asked.Without(h.not)
	if !r.heard {
		r.heard = true
		return
	}
	r.o.Missed()
	if gap {
		for _, uri := range r.taken.Within(before).URIs {
			h.in.Notify(wire.NoteResourceUpdated, wire.Apply(nil, wire.Put(wire.Quote(uri), "uri")))
		}
	}
}

// blame says what of a refused request it is refused for: of what is new since the last yes, if there is anything.
func (r *Ear) blame(asked drawbridge.Watched, err error) Refusals {
	suspects := asked.Without(r.taken)
	if suspects.None() {
		suspects = asked
	}
	all := Refusals{refusal(suspects, err)}
	if a := answerOf(err); !a.said || a.never || r.isBusy(err) {
		return all
	}
	if found := r.sift(suspects, err); len(found) > 0 {
		return found
	}
	return all
}

// isBusy says whether a server that gave an error which may pass refuses what nobody could object to as well.
func (r *Ear) isBusy(err error) bool {
	if !answerOf(err).mayPass || !r.o.Lists {
		return false
	}
	h, err := r.ask(drawbridge.Watched{})
	if err == nil {
		h.stop()
		r.settle()
	}
	return err != nil
}

// sift asks for ever smaller parts of what is refused with err together, and gives what is refused by itself.
func (r *Ear) sift(suspects drawbridge.Watched, err error) (found Refusals) {
	if len(suspects.URIs)+len(suspects.Tasks) == 1 {
		return Refusals{refusal(suspects, err)}
	}
	uris, tasks := len(suspects.URIs)/2, (len(suspects.Tasks)+len(suspects.URIs)%2)/2
	for _, half := range []drawbridge.Watched{
		{URIs: suspects.URIs[:uris], Tasks: suspects.Tasks[:tasks]}, {URIs: suspects.URIs[uris:], Tasks: suspects.Tasks[tasks:]},
	} {
		h, err := r.ask(half)
		switch {
		case r.ctx.Err() != nil || r.o.Over():
			return nil
		case err != nil:
			found = append(found, r.sift(half, err)...)
		default:
			h.stop()
			r.settle()
		}
	}
	return found
}

// ask begins a request, and waits until the server says yes or no.
func (r *Ear) ask(wanted drawbridge.Watched) (*hearing, error) {
	if r.o.Settle != nil {
		r.hush()
	}
	h := r.start(wanted)
	timer := time.NewTimer(Answered)
	defer timer.Stop()
	select {
	case <-h.acked:
		return h, nil
	case <-h.over:
	case <-timer.C:
		if wanted.None() {
			return h, nil // it may tell all the same
		}
		h.stop()
		return nil, context.DeadlineExceeded
	}
	select {
	case <-h.acked:
		return h, nil // it is over already: that is seen to later
	default:
		return nil, cmp.Or(h.err, errUnheard)
	}
}

var errUnheard = errors.New("the server ended the request at once")

// hush ends the request that is open.
func (r *Ear) hush() {
	if r.now != nil {
		r.now.stop()
		r.now = nil
		r.settle()
	}
}

func (r *Ear) settle() {
	if r.o.Settle != nil {
		r.o.Settle(r.ctx)
	}
}

// A hearing is one listening request.
type hearing struct {
	in     link.Handler
	cancel context.CancelFunc
	began  time.Time
	asked  drawbridge.Watched
	// acked is closed when the server has said that it listens; not is what it leaves out.
	acked chan struct{}
	once  sync.Once
	not   drawbridge.Watched
	// over is closed when it has ended, with err where the server or the connection ended it wrongly.
	over chan struct{}
	err  error
}

func (r *Ear) start(wanted drawbridge.Watched) *hearing {
	h := &hearing{in: r.o.Handler, began: time.Now(), asked: wanted, acked: make(chan struct{}), over: make(chan struct{})}
	var ctx context.Context
	ctx, h.cancel = context.WithCancel(r.ctx)
	r.work.Go(func() {
		defer close(h.over)
		defer h.cancel()
		h.err = r.o.Listen(ctx, wanted, h)
	})
	return h
}

func (h *hearing) stop() {
	h.cancel()
	<-h.over
}

// Notify passes on what the server says, but for the first: that it listens, and to what of it.
func (h *hearing) Notify(method string, params json.RawMessage) {
	if method != wire.NoteListenAck {
		h.in.Notify(method, params)
		return
	}
	h.once.Do(func() {
		h.not = notAgreed(h.asked, wire.Get(params, "notifications"))
		close(h.acked)
	})
}

// Ask is not for a server that speaks by a listening request.
func (h *hearing) Ask(ctx context.Context, method string, params json.RawMessage) (result, errorObject json.RawMessage) {
	return h.in.Ask(ctx, method, params)
}

// notAgreed gives what an acknowledgement leaves out. Of tasks it need not speak: they are an extension's.
func notAgreed(asked drawbridge.Watched, agreed json.RawMessage) drawbridge.Watched {
	if len(agreed) == 0 || len(asked.URIs) == 0 {
		return drawbridge.Watched{}
	}
	var uris []string
	for raw := range wire.Elements(wire.Get(agreed, "resourceSubscriptions")) {
		if uri, ok := wire.Text(raw); ok {
			uris = append(uris, uri)
		}
	}
	return drawbridge.Watched{URIs: asked.URIs}.Without(drawbridge.Watched{URIs: uris})
}
