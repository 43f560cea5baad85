package transport

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// DefaultMaxBody is the default bound of a body or an event, in bytes.
const DefaultMaxBody = 64 << 20

const (
	// goodbyeTimeout bounds messages that no caller waits for: a cancellation, the end of a session.
	goodbyeTimeout = 3 * time.Second
	// maxErrorBody is how much is read of the body of an error.
	maxErrorBody = 1 << 20
)

// HTTPOptions configure a connection. URL is required.
type HTTPOptions struct {
	// URL is the server's address, http or https.
	URL string

	// Headers go with every request. Those that the protocol sets itself win.
	Headers http.Header

	// AllowLocalNetwork is set for a row of the person who runs Drawbridge: its URL may lead to this machine and
	// network by any name.
	AllowLocalNetwork bool
	// Client sends the requests; nil is one of the connection's own, on a NewHTTPTransport. Its CheckRedirect is not
	// used.
	Client *http.Client

	// Tokens supplies the access token of each request. It may be nil.
	Tokens TokenSource

	// Handler receives what belongs to no request. With nil, notifications are dropped and requests refused.
	Handler Handler

	// HeaderParams returns the arguments of a tool that are also sent in headers. It may be nil.
	HeaderParams func(tool string) []mcp.HeaderParam

	// OnGap is called when the stream outside requests was reopened and could not be resumed: changes may have been
	// missed. It may be nil, and applies to HTTPConn alone.
	OnGap func()

	// OnJunk receives data that is not a message. It may be nil.
	OnJunk func(data []byte)

	// MaxBody is how many bytes a body or an event may have; 0 means DefaultMaxBody.
	MaxBody int

	// MaxServerRequests is how many requests of the server are answered at once; 0 means defaultMaxServerRequests.
	MaxServerRequests int

	// Logger may be nil.
	Logger *slog.Logger
}

// An HTTPConn is a Conn to a Streamable HTTP server. The params decide the era of each request. One with a stateless
// protocol version in _meta goes out alone, with headers that mirror it. All others belong to one stateful session: the
// answer to initialize sets its version and id. After notifications/initialized a stream is opened for messages outside
// requests, and reopened when it breaks, while the session lives. A server need not offer it. A stateful answer whose
// stream breaks off is resumed if the server made that possible. Each stream is read by its own goroutine, that of an
// answer by the caller of Call: the Handler is called from several.
//
// An unreachable server does not end the connection: each request fails, and the next one tries again. Close ends it,
// and ErrSessionExpired. A JSON answer needs no extra goroutine; after an event stream one reads the rest, so that the
// connection can be reused.
type HTTPConn struct {
	o            HTTPOptions
	log          *slog.Logger
	target       httpTarget
	configErr    error // what is wrong with the URL
	ownTransport *http.Transport

	pending   requestTable
	responder *requestResponder
	buffers   readerPool
	session   atomic.Pointer[legacySession]

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	live    context.Context // ends with done
	endLive context.CancelFunc

	// streamTried is closed when the first attempt to open the stream outside requests was answered, or took too long.
	streamTried     chan struct{}
	streamTriedOnce sync.Once

	closing  sync.Once
	finished chan struct{} // closed when every goroutine has ended

	mu            sync.Mutex
	ended         bool
	err           error
	noMoreWorkers bool // no more goroutines
	work          sync.WaitGroup
	listening     bool
}

var _ Conn = (*HTTPConn)(nil)

// A legacySession holds the answer to initialize. The id is empty if the server keeps no session.
type legacySession struct{ version, id string }

// hasID reports whether the server keeps the session, which may be nil, and can lose it.
func (s *legacySession) hasID() bool { return s != nil && s.id != "" }

// NewHTTPConn returns a connection that lasts until Close, even if ctx ends earlier. It sends nothing yet: invalid
// options make the first request fail.
func NewHTTPConn(ctx context.Context, o HTTPOptions) *HTTPConn {
	h := &HTTPConn{o: o, log: o.Logger, pending: requestTable{handler: o.Handler}, finished: make(chan struct{}),
		streamTried: make(chan struct{})}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	h.target, h.ownTransport, h.configErr = newHTTPTarget(o)
	h.responder = newRequestResponder(h.sendReply, o.MaxServerRequests, h.log)
	h.ctx, h.cancel = context.WithCancel(context.WithoutCancel(ctx))
	h.live, h.endLive = context.WithCancel(h.ctx)
	return h
}

// Call sends a request as Conn specifies. The params get a progress token of the connection's own, except for
// initialize. Besides ErrClosed and ErrLost the error can be a *HTTPStatusError, ErrSessionExpired or
// ErrRedirectRefused: the request was refused.
func (h *HTTPConn) Call(ctx context.Context, method string, params json.RawMessage, in Handler) (mcp.Message, error) {
	if err := h.checkUsable(ctx); err != nil {
		return mcp.Message{}, err
	}
	x := &httpExchange{conn: h, method: method, modern: isModernRequest(params)}
	if !x.modern && mayRequestDuring(method) {
		h.awaitListenStream(ctx)
	}
	// The exchange may outlast Do: the rest of a stream is read behind the answer. So it has a context of its own.
	during, cancel := context.WithCancel(context.WithoutCancel(ctx))
	x.cancel = cancel
	x.request = pendingRequest{handler: in, isSubscription: method == mcp.MethodListen}
	if !x.modern {
		x.request.onStrayResponse = x.acceptStrayAnswer
	}
	h.pending.add(&x.request)
	defer h.pending.remove(x.request.id)
	id := strconv.AppendUint(nil, x.request.id, 10)
	if method != mcp.MethodInitialize {
		params = rawjson.Apply(params, rawjson.Put(id, "_meta", mcp.MetaProgressToken))
	}

	defer context.AfterFunc(ctx, cancel)()
	defer context.AfterFunc(h.ctx, cancel)()
	m, err := x.roundTrip(during, mcp.Message{ID: id, Method: method, Params: params})
	if !x.cancelHandedOff {
		cancel()
	}
	switch {
	case err == nil:
		return m, nil
	case x.strayAnswer.Load() != nil:
		return *x.strayAnswer.Load(), nil
	case ctx.Err() != nil:
		if !x.modern && !errors.Is(err, ErrClosed) && isCancellable(method) {
			h.sendCancelled(id, cancelReason(ctx))
		}
		return mcp.Message{}, ctx.Err()
	case h.ctx.Err() != nil && !errors.Is(err, ErrClosed):
		return mcp.Message{}, ErrLost
	case errors.Is(err, ErrSessionExpired):
		h.markEnded(ErrSessionExpired)
	case errors.Is(err, ErrLost) && !x.modern && isCancellable(method):
		h.sendCancelled(id, "the answer was cut off")
	}
	return mcp.Message{}, err
}

// HasSession reports whether the legacy server keeps a session. Only then can it send requests during a call.
func (h *HTTPConn) HasSession() bool { return h.session.Load().hasID() }

// isModernRequest reports whether the params belong to the stateless era.
func isModernRequest(params json.RawMessage) bool {
	return mcp.EraOf(mcp.ProtocolVersion(params)).Has(drawbridge.Modern)
}

// checkUsable returns why nothing can be sent, or nil.
func (h *HTTPConn) checkUsable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if h.live.Err() == nil {
		return h.configErr
	}
	if err := h.Err(); err != nil {
		return unsentError{err}
	}
	return ErrClosed
}

// cancelRetryDelay is how long a cancellation that went wrong waits for its second try.
const cancelRetryDelay = 100 * time.Millisecond

// sendCancelled cancels a request at a stateful server, to which the end of the exchange means nothing. It is sent even
// at the end of the connection: the server may ignore the end of the session.
func (h *HTTPConn) sendCancelled(id []byte, reason string) {
	params := json.RawMessage(`{"requestId":` + string(id) + `,"reason":` + string(rawjson.Quote(reason)) + `}`)
	h.startWorker(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(h.ctx), goodbyeTimeout)
		defer cancel()
		note := mcp.Message{Method: mcp.NoteCancelled, Params: params}
		err := h.postUnanswered(ctx, note)
		if err != nil && sleepContext(ctx, cancelRetryDelay) { // what cut off the answer may have cut this off too
			err = h.postUnanswered(ctx, note)
		}
		if err != nil {
			h.log.Debug("a cancellation was not sent", "error", err)
		}
	})
}

// Notify sends a notification and waits until the server has taken it.
func (h *HTTPConn) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if err := h.checkUsable(ctx); err != nil {
		return err
	}
	during, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)()
	err := h.postUnanswered(during, mcp.Message{Method: method, Params: params})
	switch {
	case err == nil && method == mcp.NoteInitialized && !isModernRequest(params):
		h.startListening()
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	}
	return err
}

// sendReply sends the answer to a request of the server.
func (h *HTTPConn) sendReply(ctx context.Context, m mcp.Message) {
	if err := h.postUnanswered(ctx, m); err != nil {
		h.log.Debug("an answer to the server was not sent", "error", err)
	}
}

// postUnanswered posts a message that has no answer.
func (h *HTTPConn) postUnanswered(ctx context.Context, m mcp.Message) error {
	resp, err := h.target.post(ctx, h.requestHeader(m), m)
	if err != nil {
		return err
	}
	if isSuccess(resp) {
		drainBody(resp)
		return nil
	}
	body := readErrorBody(resp)
	if h.sessionOf(m).hasID() && isSessionExpired(resp.StatusCode, body, 0) {
		h.markEnded(ErrSessionExpired)
		return ErrSessionExpired
	}
	return newHTTPStatusError(resp, body)
}

// Done is closed when the connection has ended.
func (h *HTTPConn) Done() <-chan struct{} { return h.live.Done() }

// Err returns why the connection has ended: it wraps ErrSessionExpired. It is nil before that, and after Close.
func (h *HTTPConn) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// markEnded marks the connection as ended. The first reason counts; nil is the reason of Close.
func (h *HTTPConn) markEnded(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ended {
		h.ended, h.err = true, err
		h.endLive()
	}
}

// startWorker runs work in a goroutine that Close waits for. It returns false once Close waits.
func (h *HTTPConn) startWorker(work func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.noMoreWorkers {
		h.work.Go(work)
	}
	return !h.noMoreWorkers
}

// Close ends the connection: waiting requests, the stream, and the session on the server, which is deleted. It returns
// when every goroutine has ended, or with the context's error.
func (h *HTTPConn) Close(ctx context.Context) error {
	h.markEnded(nil)
	h.closing.Do(func() {
		h.mu.Lock()
		h.noMoreWorkers = true
		h.mu.Unlock()
		h.cancel()
		h.deleteSession(ctx)
		go func() {
			h.responder.closeAndWait()
			h.work.Wait()
			if h.ownTransport != nil {
				h.ownTransport.CloseIdleConnections()
			}
			close(h.finished)
		}()
	})
	select {
	case <-h.finished:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// deleteSession deletes the session on the server, as the specification asks. Servers may ignore it.
func (h *HTTPConn) deleteSession(ctx context.Context) {
	s := h.session.Load()
	if !s.hasID() || h.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, goodbyeTimeout)
	defer cancel()
	resp, err := h.target.doAuthorized(ctx, http.MethodDelete, h.legacyHeader(s), nil)
	if err != nil {
		h.log.Debug("the server was not told of the end of its session", "error", err)
		return
	}
	drainBody(resp)
}

// An httpTarget is the destination of requests.
type httpTarget struct {
	client  *http.Client
	url     *url.URL
	host    string
	header  http.Header // what goes with every request
	tokens  TokenSource
	maxBody int
}

func newHTTPTarget(o HTTPOptions) (httpTarget, *http.Transport, error) {
	if o.MaxBody <= 0 {
		o.MaxBody = DefaultMaxBody
	}
	t := httpTarget{maxBody: o.MaxBody, tokens: o.Tokens}
	client, own := httpClientFor(o)
	t.client = client
	var err error
	if t.url, err = parseServerURL(o.URL); err == nil {
		t.header, t.host, err = baseHeader(o.Headers)
	}
	return t, own, err
}
