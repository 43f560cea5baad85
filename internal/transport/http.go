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

// DefaultMaxBody is the default size limit of a body or an event in bytes.
const DefaultMaxBody = 64 << 20

const (
	// goodbyeTimeout is the time limit for messages that no caller waits for: a cancellation, and the deletion of a
	// session.
	goodbyeTimeout = 3 * time.Second
	// maxErrorBody is how many bytes are read of the body of an error response.
	maxErrorBody = 1 << 20
)

// HTTPOptions configure a connection to a server over HTTP. URL is required.
type HTTPOptions struct {
	// URL is the server's address, http or https.
	URL string

	// Headers are sent with every request. Headers that the protocol defines replace them.
	Headers http.Header

	// AllowLocalNetwork permits the URL to lead to this machine and its local network. It is set if the URL comes from
	// a configuration of the person who runs Drawbridge.
	AllowLocalNetwork bool
	// Client sends the requests; nil means a new client with the transport of NewHTTPTransport. A copy of Client is
	// used, whose CheckRedirect is replaced.
	Client *http.Client

	// Tokens supplies the access token of each request. It may be nil.
	Tokens TokenSource

	// Handler receives the messages that do not belong to a request. If it is nil, notifications are dropped and server
	// requests are refused.
	Handler Handler

	// HeaderParams returns the arguments of a tool that are also sent in headers. It may be nil.
	HeaderParams func(tool string) []mcp.HeaderParam

	// OnGap is called when the stream outside requests was reopened but not resumed where it broke, so that
	// notifications of changes may have been missed. Only HTTPConn uses it. It may be nil.
	OnGap func()

	// OnJunk receives data that is not a message. It may be nil.
	OnJunk func(data []byte)

	// MaxBody is the size limit of a body or an event in bytes; 0 means DefaultMaxBody.
	MaxBody int

	// Budget bounds the memory of the answers in flight; nil means no bound. A request whose answer has no room waits
	// for it; when the context of the request ends, its error wraps a *mcp.NoRoomError.
	Budget *mcp.AnswerBudget

	// MaxServerRequests is how many server requests are answered at the same time; 0 means defaultMaxServerRequests.
	MaxServerRequests int

	// Logger may be nil.
	Logger *slog.Logger
}

// An HTTPConn is a Conn to a Streamable HTTP server. The params of each request determine its protocol era. A request
// with a stateless protocol version in _meta is independent of a session; its headers repeat values of its params. All
// other requests belong to one stateful session. The result of initialize determines the version and the ID of that
// session.
//
// After notifications/initialized, the connection opens the stream outside requests, if the server offers one. This is
// an event stream for messages that do not belong to a request. While the session exists, that stream is reopened when
// it breaks. If the stream of a stateful response breaks, it is resumed if the server supports that. Each stream is
// read by its own goroutine, except that the caller of Call reads the response. Therefore the Handler is called from
// several goroutines.
//
// If the server cannot be reached, the request fails but the connection does not end: the next request tries again. The
// connection ends with Close or with ErrSessionExpired. A JSON response needs no extra goroutine. After a response in
// an event stream, a goroutine reads the rest of the stream, so that the HTTP connection can be reused.
type HTTPConn struct {
	o            HTTPOptions
	log          *slog.Logger
	target       httpTarget
	configErr    error // the error in the URL or the headers
	ownTransport *HTTPTransport

	pending   requestTable
	responder *requestResponder
	buffers   readerPool
	session   atomic.Pointer[legacySession]

	ctx     context.Context // done after Close
	cancel  context.CancelFunc
	live    context.Context // done when the connection has ended
	endLive context.CancelFunc

	// streamTried is closed when the first attempt to open the stream outside requests has succeeded or failed. It is
	// also closed if that takes longer than listenStreamWait.
	streamTried     chan struct{}
	streamTriedOnce sync.Once

	closing  sync.Once
	finished chan struct{} // closed when every goroutine has ended

	mu            sync.Mutex
	ended         bool
	err           error
	noMoreWorkers bool // set when no goroutine may be started any more
	work          sync.WaitGroup
	listening     bool
}

var _ Conn = (*HTTPConn)(nil)

// A legacySession is the session that a stateful server created in its response to initialize. id is the session ID; it
// is empty if the server does not keep a session.
type legacySession struct{ version, id string }

// hasID reports whether the server keeps the session, so that the session can expire. s may be nil.
func (s *legacySession) hasID() bool { return s != nil && s.id != "" }

// NewHTTPConn returns a connection that lasts until Close, even if ctx ends earlier. It sends nothing. If the options
// are invalid, every request fails.
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

// Call sends a request as described at Conn. Except for initialize, it sets the progress token in params to the
// request's ID. The error may wrap ErrClosed or ErrLost. If the server refused the request, the error is an
// *HTTPStatusError, ErrSessionExpired or ErrRedirectRefused.
func (h *HTTPConn) Call(ctx context.Context, method string, params json.RawMessage, in Handler) (mcp.Message, error) {
	if err := h.checkUsable(ctx); err != nil {
		return mcp.Message{}, err
	}
	x := &httpExchange{conn: h, method: method, modern: isModernRequest(params)}
	if !x.modern && mayRequestDuring(method) {
		h.awaitListenStream(ctx)
	}
	// The exchange may last longer than this call, since the rest of a stream is read after the response. So it has its
	// own context.
	during, cancel := context.WithCancel(context.WithoutCancel(ctx))
	x.cancel = cancel
	x.request = pendingRequest{handler: in, isSubscription: method == mcp.MethodListen, cancel: cancel}
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
	if h.ctx.Err() != nil { // Close may have cancelled the waiting requests before this one was added
		cancel()
	}
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
		if mcp.IsNoRoom(err) {
			return mcp.Message{}, err
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

// HasSession reports whether the stateful server has assigned a session ID. A server without sessions cannot send
// requests during a call.
func (h *HTTPConn) HasSession() bool { return h.session.Load().hasID() }

// isModernRequest reports whether params belong to a stateless request.
func isModernRequest(params json.RawMessage) bool {
	return mcp.EraOf(mcp.ProtocolVersion(params)).Has(drawbridge.Modern)
}

// checkUsable returns an error if nothing can be sent, otherwise nil.
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

// cancelRetryDelay is the pause before a failed cancellation is sent again.
const cancelRetryDelay = 100 * time.Millisecond

// sendCancelled sends a stateful server a cancellation of the request with that ID. Such a server does not treat the
// end of the HTTP exchange as a cancellation. The cancellation is sent even when the connection ends, since the server
// may ignore the end of the session.
func (h *HTTPConn) sendCancelled(id []byte, reason string) {
	params := json.RawMessage(`{"requestId":` + string(id) + `,"reason":` + string(rawjson.Quote(reason)) + `}`)
	h.startWorker(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(h.ctx), goodbyeTimeout)
		defer cancel()
		note := mcp.Message{Method: mcp.NoteCancelled, Params: params}
		err := h.postUnanswered(ctx, note)
		if err != nil && sleepContext(ctx, cancelRetryDelay) { // both may fail for the same reason
			err = h.postUnanswered(ctx, note)
		}
		if err != nil {
			h.log.Debug("a cancellation was not sent", "error", err)
		}
	})
}

// Notify sends a notification and waits until the server has accepted it.
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

// sendReply sends the response to a server request.
func (h *HTTPConn) sendReply(ctx context.Context, m mcp.Message) {
	if err := h.postUnanswered(ctx, m); err != nil {
		h.log.Debug("an answer to the server was not sent", "error", err)
	}
}

// postUnanswered posts a message that has no response.
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

// Done returns a channel that is closed when the connection has ended.
func (h *HTTPConn) Done() <-chan struct{} { return h.live.Done() }

// Err returns an error that wraps ErrSessionExpired if the connection has ended for that reason. It returns nil before
// the end and after Close.
func (h *HTTPConn) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// markEnded marks the connection as ended. Only the first error is stored; err is nil for Close.
func (h *HTTPConn) markEnded(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ended {
		h.ended, h.err = true, err
		h.endLive()
	}
}

// startWorker runs work in a goroutine that Close waits for. It returns false and does not run work after Close was
// called.
func (h *HTTPConn) startWorker(work func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.noMoreWorkers {
		h.work.Go(work)
	}
	return !h.noMoreWorkers
}

// Close ends the waiting requests and the stream, and deletes the session on the server. It returns when every
// goroutine has ended, or with the error of ctx.
func (h *HTTPConn) Close(ctx context.Context) error {
	h.markEnded(nil)
	h.closing.Do(func() {
		h.mu.Lock()
		h.noMoreWorkers = true
		h.mu.Unlock()
		h.cancel()
		h.pending.cancelAll()
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

// deleteSession sends a request to delete the session, as the specification requires. Servers may ignore it.
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

// An httpTarget sends HTTP requests to one URL.
type httpTarget struct {
	client  *http.Client
	url     *url.URL
	host    string
	header  http.Header // sent with every request
	tokens  TokenSource
	maxBody int
}

func newHTTPTarget(o HTTPOptions) (httpTarget, *HTTPTransport, error) {
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
