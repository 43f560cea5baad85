package bridge

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/link"
	"github.com/drawbridge-mcp/drawbridge/bridge/remote"
	"github.com/drawbridge-mcp/drawbridge/bridge/signin"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A greeter opens one session. What a server speaks is found out by asking it in the modern way; whoever does not answer
// that is asked in the legacy way, on a fresh process where the first one exited or stays silent.
type greeter struct {
	e   *endpoint
	key key
	// opener is the call that wants a session of its own; nil for a shared one.
	opener *drawbridge.Call
}

// openHome opens the session that is kept, and says what the server speaks. What is remembered of it is tried first.
func (e *endpoint) openHome(ctx context.Context) (*session, drawbridge.Era, error) {
	ctx, cancel := context.WithTimeout(ctx, e.pool.o.ConnectTimeout)
	defer cancel()
	g := greeter{e: e, key: e.homeKey()}
	e.mu.Lock()
	known := e.era
	e.mu.Unlock()
	var s *session
	var era drawbridge.Era
	var err error
	switch {
	case known.Has(drawbridge.Modern) && e.row.Type != "sse":
		s, era, err = g.modern(ctx)
		if err != nil && !hopeless(err) && ctx.Err() == nil {
			s, era, err = g.probe(ctx)
		}
	case known == drawbridge.Legacy || e.row.Type == "sse":
		s, era, err = g.legacy(ctx)
	default:
		s, era, err = g.probe(ctx)
	}
	return s, era, e.greetFault(ctx, err)
}

// openOther opens a session beside the home.
func (e *endpoint) openOther(ctx context.Context, k key, opener *drawbridge.Call) (*session, error) {
	g := greeter{e, k, opener}
	if k.session == "" && k.client == "" {
		g.opener = nil
	}
	if k.era == drawbridge.Legacy {
		s, _, err := g.legacy(ctx)
		return s, e.greetFault(ctx, err)
	}
	// A modern server needs no greeting: each request says who asks and how.
	s, err := g.connect(ctx)
	if err == nil {
		s.era, s.version = drawbridge.Modern, wire.Version20260728
	}
	return s, e.greetFault(ctx, err)
}

// greetFault puts what went wrong into words. It gives nil for nil.
func (e *endpoint) greetFault(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
		return e.mountFault("connect", &link.TimeoutError{After: e.pool.o.ConnectTimeout})
	}
	return e.mountFault("connect", err)
}

// hopeless says that another way of asking would not help: there is nobody to ask, or they want to know who asks.
func hopeless(err error) bool {
	if link.CodeOf(err) == drawbridge.AuthFailure || signin.Delayed(err) {
		return true
	}
	_, started := errors.AsType[*startError](err)
	return started || errors.Is(err, link.ErrClosed)
}

// modern opens a session with a server that is known to be modern.
func (g greeter) modern(ctx context.Context) (*session, drawbridge.Era, error) {
	s, err := g.connect(ctx)
	if err != nil {
		return nil, 0, err
	}
	era, err := s.discover(ctx)
	if err == nil && !era.Has(drawbridge.Modern) {
		err = errNotModern
	}
	if err != nil {
		return nil, 0, g.abandon(s, err)
	}
	return s, era, nil
}

var errNotModern = errors.New("the server speaks no revision of the modern generation")

// probe opens a session with a server of which nothing is known.
func (g greeter) probe(ctx context.Context) (*session, drawbridge.Era, error) {
	s, err := g.connect(ctx)
	if err != nil {
		return nil, 0, err
	}
	era, err := g.tryDiscover(ctx, s)
	switch {
	case err == nil && era.Has(drawbridge.Modern):
		return s, era, nil
	case err != nil && (hopeless(err) || ctx.Err() != nil):
		return nil, 0, g.abandon(s, err)
	case err != nil && !remote.Answered(err) && s.over():
		g.e.close(s, closeSoon)
		return g.legacy(ctx)
	case err != nil && !remote.Answered(err):
		return g.patient(ctx, s)
	}
	return g.greet(ctx, s)
}

// patient greets a server that was silent when it was probed. It may only be slow to start, as one that npx has to fetch
// first, and ending it would begin that anew: a fresh process comes after half of the time that is left.
func (g greeter) patient(ctx context.Context, s *session) (*session, drawbridge.Era, error) {
	half := ctx
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		half, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	greeted, era, err := g.greet(half, s)
	if err == nil || remote.Answered(err) || ctx.Err() != nil {
		return greeted, era, err
	}
	return g.legacy(ctx)
}

// tryDiscover asks in the modern way, within the time for that.
func (g greeter) tryDiscover(ctx context.Context, s *session) (drawbridge.Era, error) {
	ctx, cancel := context.WithTimeout(ctx, g.e.pool.o.ProbeTimeout)
	defer cancel()
	return s.discover(ctx)
}

// legacy opens a session in the legacy way.
func (g greeter) legacy(ctx context.Context) (*session, drawbridge.Era, error) {
	s, err := g.connect(ctx)
	if err != nil {
		return nil, 0, err
	}
	return g.greet(ctx, s)
}

// greet greets in the legacy way. A server without a type that refuses Streamable HTTP is tried as HTTP+SSE (2025-11-25,
// Transports, Backwards Compatibility). One that refuses initialize is asked in the modern way once more: it may have
// been slow to start when it was probed, or be another than the one remembered.
func (g greeter) greet(ctx context.Context, s *session) (*session, drawbridge.Era, error) {
	err := s.initialize(ctx, g.opener)
	if err == nil {
		return s, drawbridge.Legacy, nil
	}
	if g.mayBeSSE(err) {
		g.e.close(s, closeSoon)
		if s, err = g.connectSSE(ctx); err != nil {
			return nil, 0, err
		}
		if err = s.initialize(ctx, g.opener); err == nil {
			return s, drawbridge.Legacy, nil
		}
	}
	if _, refused := errors.AsType[*link.ReplyError](err); refused && g.opener == nil {
		if era, err := g.tryDiscover(ctx, s); err == nil && era.Has(drawbridge.Modern) {
			return s, era, nil
		}
	}
	return nil, 0, g.abandon(s, err)
}

// mayBeSSE says whether a refusal is one that servers give who speak HTTP+SSE only.
func (g greeter) mayBeSSE(err error) bool {
	status, ok := errors.AsType[*remote.StatusError](err)
	return ok && g.e.row.Type == "" && g.e.row.URL != "" &&
		slices.Contains([]int{http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed}, status.Code)
}

// abandon closes a session that was not greeted. It gives the error that says most about why.
func (g greeter) abandon(s *session, err error) error {
	if errors.Is(err, link.ErrLost) || errors.Is(err, link.ErrClosed) && s.proc != nil {
		if why := s.ending(); why != nil {
			err = why
		}
	}
	g.e.close(s, closeSoon)
	return err
}
