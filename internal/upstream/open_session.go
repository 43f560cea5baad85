package upstream

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/oauth"
	"github.com/drawbridge-mcp/drawbridge/internal/transport"
)

// A sessionOpener opens one session. It determines the server's protocol era with the request server/discover. If the
// server refuses that request or does not answer it, the opener sends initialize. It starts a new process for that if
// the first process exited or stays silent.
type sessionOpener struct {
	server *managedServer
	key    sessionKey
	// openingCall is the call for which an extra session is opened; nil for a shared session.
	openingCall *drawbridge.Call
}

// openPrimary opens the primary session and returns the protocol eras that the server supports. It first tries the era
// that is known from an earlier session.
func (e *managedServer) openPrimary(ctx context.Context) (*session, drawbridge.ProtocolEra, error) {
	ctx, cancel := context.WithTimeout(ctx, e.pool.o.ConnectTimeout)
	defer cancel()
	g := sessionOpener{server: e, key: e.primaryKey()}
	known := e.sessions.knownEra()
	var s *session
	var era drawbridge.ProtocolEra
	var err error
	switch {
	case known.Has(drawbridge.Modern) && e.config.Type != "sse":
		s, era, err = g.openModern(ctx)
		if err != nil && !isFinalConnectError(err) && ctx.Err() == nil {
			s, era, err = g.probeAndOpen(ctx)
		}
	case known == drawbridge.Legacy || e.config.Type == "sse":
		s, era, err = g.openLegacy(ctx)
	default:
		s, era, err = g.probeAndOpen(ctx)
	}
	return s, era, e.connectFault(ctx, err)
}

// openExtra opens an extra session, which exists in addition to the primary session. opener is the call for which it is
// opened.
func (e *managedServer) openExtra(ctx context.Context, k sessionKey, opener *drawbridge.Call) (*session, error) {
	g := sessionOpener{e, k, opener}
	if k.session == "" && k.clientKind == "" {
		g.openingCall = nil
	}
	if k.era == drawbridge.Legacy {
		s, _, err := g.openLegacy(ctx)
		return s, e.connectFault(ctx, err)
	}
	// A stateless server does not need a handshake: each request contains the client info and the version.
	s, err := g.connect(ctx)
	if err == nil {
		s.era, s.version = drawbridge.Modern, mcp.Version20260728
	}
	return s, e.connectFault(ctx, err)
}

// connectFault returns the mount fault for err, or nil if err is nil.
func (e *managedServer) connectFault(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
		return e.mountFault("connect", &transport.TimeoutError{After: e.pool.o.ConnectTimeout, Setting: connectTimeoutSetting})
	}
	return e.mountFault("connect", err)
}

// isFinalConnectError reports whether an attempt with another protocol era is useless: the server cannot be reached or
// requires a sign-in.
func isFinalConnectError(err error) bool {
	if transport.FaultCodeOf(err) == drawbridge.AuthFailure || oauth.IsTemporary(err) {
		return true
	}
	_, started := errors.AsType[*startError](err)
	return started || errors.Is(err, transport.ErrClosed)
}

// openModern opens a session with a server known to be stateless.
func (g sessionOpener) openModern(ctx context.Context) (*session, drawbridge.ProtocolEra, error) {
	s, err := g.connect(ctx)
	if err != nil {
		return nil, 0, err
	}
	era, err := s.discover(ctx)
	if err == nil && !era.Has(drawbridge.Modern) {
		err = errNotModern
	}
	if err != nil {
		return nil, 0, g.closeFailed(s, err)
	}
	return s, era, nil
}

var errNotModern = errors.New("the server does not support a stateless protocol version")

// probeAndOpen opens a session with a server of unknown era.
func (g sessionOpener) probeAndOpen(ctx context.Context) (*session, drawbridge.ProtocolEra, error) {
	s, err := g.connect(ctx)
	if err != nil {
		return nil, 0, err
	}
	era, err := g.probeDiscover(ctx, s)
	switch {
	case err == nil && era.Has(drawbridge.Modern):
		return s, era, nil
	case err != nil && (isFinalConnectError(err) || ctx.Err() != nil):
		return nil, 0, g.closeFailed(s, err)
	case err != nil && !transport.IsServerResponse(err) && s.isOver():
		g.server.closeSession(s, quickCloseTimeout)
		return g.openLegacy(ctx)
	case err != nil && !transport.IsServerResponse(err):
		return g.handshakeSlowServer(ctx, s)
	}
	return g.handshakeLegacy(ctx, s)
}

// handshakeSlowServer sends initialize to a server that did not answer server/discover. The server may only start
// slowly, for example because npx has to download it. A restart would also restart the download. Therefore a new
// process is started only if initialize was not answered within half of the remaining time.
func (g sessionOpener) handshakeSlowServer(ctx context.Context, s *session) (*session, drawbridge.ProtocolEra, error) {
	half := ctx
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		half, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	greeted, era, err := g.handshakeLegacy(half, s)
	if err == nil || transport.IsServerResponse(err) || ctx.Err() != nil {
		return greeted, era, err
	}
	return g.openLegacy(ctx)
}

// probeDiscover sends server/discover within ProbeTimeout.
func (g sessionOpener) probeDiscover(ctx context.Context, s *session) (drawbridge.ProtocolEra, error) {
	ctx, cancel := context.WithTimeout(ctx, g.server.pool.o.ProbeTimeout)
	defer cancel()
	return s.discover(ctx)
}

// openLegacy opens a session with initialize.
func (g sessionOpener) openLegacy(ctx context.Context) (*session, drawbridge.ProtocolEra, error) {
	s, err := g.connect(ctx)
	if err != nil {
		return nil, 0, err
	}
	return g.handshakeLegacy(ctx, s)
}

// handshakeLegacy sends initialize on the session s. If the server refuses Streamable HTTP and its row does not specify
// a transport, handshakeLegacy connects with HTTP+SSE (2025-11-25, Transports, Backwards Compatibility). If the server
// answers initialize with an error, a shared session sends server/discover once more. The server may have started
// slowly, or may have become stateless since its era was stored.
func (g sessionOpener) handshakeLegacy(ctx context.Context, s *session) (*session, drawbridge.ProtocolEra, error) {
	err := s.initialize(ctx, g.openingCall)
	if err == nil {
		return s, drawbridge.Legacy, nil
	}
	if g.mayBeSSEOnly(err) {
		g.server.closeSession(s, quickCloseTimeout)
		if s, err = g.connectSSE(ctx); err != nil {
			return nil, 0, err
		}
		if err = s.initialize(ctx, g.openingCall); err == nil {
			return s, drawbridge.Legacy, nil
		}
	}
	if _, refused := errors.AsType[*transport.ResponseError](err); refused && g.openingCall == nil {
		if era, err := g.probeDiscover(ctx, s); err == nil && era.Has(drawbridge.Modern) {
			return s, era, nil
		}
	}
	return nil, 0, g.closeFailed(s, err)
}

// mayBeSSEOnly reports whether a server over HTTP may support only HTTP+SSE. Its row must not specify a transport, and
// err must be a status with which such servers refuse Streamable HTTP.
func (g sessionOpener) mayBeSSEOnly(err error) bool {
	status, ok := errors.AsType[*transport.HTTPStatusError](err)
	return ok && g.server.config.Type == "" && g.server.config.URL != "" &&
		slices.Contains([]int{http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed}, status.Code)
}

// closeFailed closes a session whose handshake failed with err. It returns the cause of the session's end if that is
// known, otherwise err.
func (g sessionOpener) closeFailed(s *session, err error) error {
	if errors.Is(err, transport.ErrLost) || errors.Is(err, transport.ErrClosed) && s.proc != nil {
		if why := s.endCause(); why != nil {
			err = why
		}
	}
	g.server.closeSession(s, quickCloseTimeout)
	return err
}
