package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/hop"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// An ear has a modern server tell of changes: by a request that stays open, and gives way to another when something else is
// watched. The old one stays until the server has said yes to the new one, or stays for good where it says no. But on a pipe
// the old one goes first: the reference servers keep what a connection listens to by connection, and forget all of it when
// one request ends.
type ear struct {
	w      *watcher
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

func newEar(w *watcher) *ear {
	r := &ear{w: w, turned: make(chan struct{}, 1)}
	r.ctx, r.cancel = context.WithCancel(w.ctx)
	return r
}

// turn has the ear look at what is wanted.
func (r *ear) turn() {
	signal(r.turned)
	if !r.begun {
		r.begun = true
		r.work.Go(r.listen)
	}
}

func (r *ear) stop() {
	r.cancel()
	r.work.Wait()
}

// listen listens until its end or the session's. What a server answers with an error that may pass, or ends by itself, is
// begun again after a pause.
func (r *ear) listen() {
	defer func() {
		if r.now != nil {
			r.now.stop()
		}
	}()
	pause := firstPause
	for {
		complete := r.arrange()
		if r.ctx.Err() != nil || r.w.s.over() {
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
			r.w.e.log.Debug("a server stopped telling of its changes", "error", r.now.err)
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
func (r *ear) arrange() (complete bool) {
	wanted, turn := r.w.wanted()
	var refused refusals
	for {
		left := wanted.Without(refused.what())
		switch {
		case r.now != nil && same(left, r.taken):
			return r.done(turn, refused)
		case left.None() && (r.deaf || !r.tellsOfLists()):
			r.hush()
			r.taken = drawbridge.Watched{}
			return r.done(turn, refused)
		}
		h, err := r.ask(left)
		switch {
		case r.ctx.Err() != nil || r.w.s.over():
			return false
		case err == nil:
			r.take(h, left)
			if not := left.Without(r.taken); !not.None() {
				refused = append(refused, drawbridge.UnwatchedError{What: not, Err: errNotAgreed})
			}
		case left.None() && codeOf(err).Retryable():
			r.w.applied(turn, refused, drawbridge.Watched{}) // it refuses everything just now
			return false
		case left.None():
			r.deaf = true
			r.w.e.log.Info("a server does not tell of its changes", "error", err)
		default:
			refused = append(refused, r.blame(left, err)...)
		}
	}
}

// done says that the server knows of a turn. It gives false where some of it is worth another attempt.
func (r *ear) done(turn int, refused refusals) (complete bool) {
	final := refused.final()
	r.w.applied(turn, refused, final.what())
	return len(final) == len(refused)
}

func same(a, b drawbridge.Watched) bool { return a.Without(b).None() && b.Without(a).None() }

// tellsOfLists says whether the server declares that it tells when its lists change.
func (r *ear) tellsOfLists() bool {
	return slices.ContainsFunc([]string{"tools", "prompts", "resources"}, func(kind string) bool {
		return wire.Declares(wire.Get(r.w.s.capabilities, kind), "listChanged")
	})
}

var errNotAgreed = &drawbridge.Fault{
	Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound, Step: "the server does not let this be watched",
}

// take puts a request in the place of the one before. The lists are asked for again, and where there was a time without
// either request, what is watched counts as updated: nobody knows what was missed.
func (r *ear) take(h *hearing, asked drawbridge.Watched) {
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
	signal(r.w.e.changed)
	if gap {
		for _, uri := range r.taken.Within(before).URIs {
			h.s.Notify(wire.NoteResourceUpdated, wire.Apply(nil, wire.Put(wire.Quote(uri), "uri")))
		}
	}
}

// blame says what of a refused request it is refused for: of what is new since the last yes, if there is anything.
func (r *ear) blame(asked drawbridge.Watched, err error) refusals {
	suspects := asked.Without(r.taken)
	if suspects.None() {
		suspects = asked
	}
	all := refusals{{What: suspects, Err: err}}
	if reply, ok := errors.AsType[*replyError](err); !ok || wire.ErrorCode(reply.object) == wire.CodeMethodNotFound || r.isBusy(err) {
		return all
	}
	if found := r.sift(suspects, err); len(found) > 0 {
		return found
	}
	return all
}

// isBusy says whether a server that gave an error which may pass refuses what nobody could object to as well.
func (r *ear) isBusy(err error) bool {
	if !codeOf(err).Retryable() || !r.tellsOfLists() {
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
func (r *ear) sift(suspects drawbridge.Watched, err error) (found refusals) {
	if len(suspects.URIs)+len(suspects.Tasks) == 1 {
		return refusals{{What: suspects, Err: err}}
	}
	uris, tasks := len(suspects.URIs)/2, (len(suspects.Tasks)+len(suspects.URIs)%2)/2
	for _, half := range []drawbridge.Watched{
		{URIs: suspects.URIs[:uris], Tasks: suspects.Tasks[:tasks]}, {URIs: suspects.URIs[uris:], Tasks: suspects.Tasks[tasks:]},
	} {
		h, err := r.ask(half)
		switch {
		case r.ctx.Err() != nil || r.w.s.over():
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
func (r *ear) ask(wanted drawbridge.Watched) (*hearing, error) {
	if r.w.e.row.URL == "" {
		r.hush()
	}
	h := r.start(wanted)
	timer := time.NewTimer(watchTimeout)
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
	switch {
	case isClosed(h.acked):
		return h, nil // it is over already: that is seen to later
	case h.err == nil:
		return nil, errUnheard
	}
	return nil, h.err
}

var errUnheard = errors.New("the server ended the request at once")

// hush ends the request that is open.
func (r *ear) hush() {
	if r.now != nil {
		r.now.stop()
		r.now = nil
		r.settle()
	}
}

// settle waits until a server on a pipe has seen to the end of a request: when it answers the next.
func (r *ear) settle() {
	if r.w.e.row.URL != "" {
		return
	}
	ctx, cancel := context.WithTimeout(r.ctx, listenFirst)
	defer cancel()
	if _, err := r.w.s.request(ctx, wire.MethodDiscover, r.w.s.ours(nil)); err != nil {
		r.w.e.log.Debug("a server did not say that it is there", "error", err)
	}
}

// A hearing is one listening request.
type hearing struct {
	s      *session
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

func (r *ear) start(wanted drawbridge.Watched) *hearing {
	h := &hearing{s: r.w.s, began: time.Now(), asked: wanted, acked: make(chan struct{}), over: make(chan struct{})}
	var ctx context.Context
	ctx, h.cancel = context.WithCancel(r.ctx)
	r.work.Go(func() {
		defer close(h.over)
		defer h.cancel()
		m, err := h.s.conn.Do(ctx, wire.MethodListen, r.params(wanted), h)
		if err == nil && m.Error != nil {
			err = &replyError{m.Error}
		}
		h.err = err
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
		h.s.Notify(method, params)
		return
	}
	h.once.Do(func() {
		h.not = notAgreed(h.asked, wire.Get(params, "notifications"))
		close(h.acked)
	})
}

// Ask is not for a server that speaks by a listening request.
func (h *hearing) Ask(ctx context.Context, method string, params json.RawMessage) (result, errorObject json.RawMessage) {
	return h.s.Ask(ctx, method, params)
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

// extensionTasks is what a client declares that hears of tasks (SEP-2663).
const extensionTasks = "io.modelcontextprotocol/tasks"

func (r *ear) params(wanted drawbridge.Watched) json.RawMessage {
	out := []byte(`{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true`)
	out = appendTexts(out, `,"resourceSubscriptions":`, wanted.URIs)
	out = appendTexts(out, `,"taskIds":`, wanted.Tasks)
	h := r.w.e.hop(r.w.s.version)
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
