// Package remote speaks to MCP servers over HTTP: Streamable HTTP in both generations, and the older HTTP+SSE.
//
// It promises, beside what package link does, that nothing of a server is read without a bound, that no header and no
// session id reaches another origin than the configured one, and that no error repeats the URL. It carries bytes: greetings,
// eras and retries of calls are the business of package bridge.
package remote

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
	"github.com/drawbridge-mcp/drawbridge/bridge/link"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// DefaultMaxBody is how many bytes a body or an event may have where nobody says otherwise.
const DefaultMaxBody = 64 << 20

const (
	// farewellTime bounds what is said to a server that nobody waits for: a cancellation, the end of a session.
	farewellTime = 3 * time.Second
	// maxErrorBody is how much is read of the body of an error.
	maxErrorBody = 1 << 20
)

// Options say where a server is and how to speak to it. URL is needed.
type Options struct {
	// URL is the server's address, http or https.
	URL string

	// Headers go with every request. Those that the protocol sets itself win.
	Headers http.Header

	// Own says that the row is that of the person who runs it: its URL may lead to this machine and network by any name.
	Own bool
	// Client sends the requests; nil is one of the connection's own, on a NewTransport. Its CheckRedirect is not used.
	Client *http.Client

	// Signer puts the right to speak to the server on each request. It may be nil.
	Signer Signer

	// Handler receives what belongs to no request. With nil, notifications are dropped and requests refused.
	Handler link.Handler

	// Marks gives the arguments of a tool that have to travel in headers too. It may be nil.
	Marks func(tool string) []wire.ParamMark

	// OnGap is called when the stream of what belongs to no request was opened again and could not be resumed: changes may
	// have been missed. It may be nil, and is for HTTP alone.
	OnGap func()

	// OnJunk is told of what came in place of a message. It may be nil.
	OnJunk func(data []byte)

	// MaxBody is how many bytes a body or an event may have; 0 means DefaultMaxBody.
	MaxBody int

	// MaxAsks is how many requests of the server are answered at once; 0 means link.DefaultMaxAsks.
	MaxAsks int

	// Logger may be nil.
	Logger *slog.Logger
}

// An HTTP is a Conn to a Streamable HTTP server. It takes the generation of each request from its params: with a modern
// protocol version in _meta it goes out alone, with the headers that mirror it. All others are of one legacy session: the
// answer to initialize sets its version and id, and after notifications/initialized a stream is opened for what the server
// says outside requests, and opened again when it breaks, for as long as the session lives. A server that offers no such
// stream is fine. A legacy answer whose stream breaks off is resumed where the server made that possible. Each stream is
// read by a goroutine of its own, that of an answer by Do's: the Handler of the connection hears from several.
//
// An unreachable server does not end the connection: each request says so, and the next one tries again. The end comes
// with Close, or with ErrSession. A Do needs no goroutine of its own for a JSON answer; behind an event stream one reads
// the rest, so that the connection can be used again.
type HTTP struct {
	o      Options
	log    *slog.Logger
	target target
	bad    error // what is wrong with the URL
	own    *http.Transport

	calls   link.Calls
	asks    *link.Asks
	buffers buffers
	session atomic.Pointer[session]

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	live   context.Context // ends with done
	done   context.CancelFunc

	// tried is closed when the first attempt to open the stream outside requests was answered, or took too long.
	tried  chan struct{}
	trying sync.Once

	closing sync.Once
	gone    chan struct{} // closed when every goroutine has ended

	mu        sync.Mutex
	ended     bool
	err       error
	closed    bool // no more goroutines
	work      sync.WaitGroup
	listening bool
}

var _ link.Conn = (*HTTP)(nil)

// A session is what a legacy server said in answer to initialize. The id is empty where it keeps none.
type session struct{ version, id string }

// kept says whether the server keeps the session, which may be nil, and can lose it.
func (s *session) kept() bool { return s != nil && s.id != "" }

// DialHTTP makes an HTTP. Nothing is sent yet; what is wrong with the options shows with the first request.
func DialHTTP(o Options) *HTTP {
	h := &HTTP{o: o, log: o.Logger, calls: link.Calls{Handler: o.Handler}, gone: make(chan struct{}), tried: make(chan struct{})}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	h.target, h.own, h.bad = newTarget(o)
	h.asks = link.NewAsks(h.reply, o.MaxAsks, h.log)
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.live, h.done = context.WithCancel(h.ctx)
	return h
}

// Do sends a request as link.Conn has it. Its params get a progress token of the connection's own, but for initialize.
// Beside ErrClosed and ErrLost the error can be a *StatusError, ErrSession or ErrRedirect: the request was refused.
func (h *HTTP) Do(ctx context.Context, method string, params json.RawMessage, in link.Handler) (wire.Message, error) {
	if err := h.usable(ctx); err != nil {
		return wire.Message{}, err
	}
	x := &exchange{h: h, method: method, modern: isModern(params)}
	if !x.modern && asks(method) {
		h.awaitStream(ctx)
	}
	// The exchange may outlast Do: the rest of a stream is read behind the answer. So it has a context of its own.
	during, cancel := context.WithCancel(context.WithoutCancel(ctx))
	x.cancel = cancel
	x.call = link.Call{In: in, Listen: method == wire.MethodListen}
	if !x.modern {
		x.call.Elsewhere = x.takeElsewhere
	}
	h.calls.Add(&x.call)
	defer h.calls.Take(x.call.ID)
	id := strconv.AppendUint(nil, x.call.ID, 10)
	if method != wire.MethodInitialize {
		params = wire.Apply(params, wire.Put(id, "_meta", wire.MetaProgressToken))
	}

	defer context.AfterFunc(ctx, cancel)()
	defer context.AfterFunc(h.ctx, cancel)()
	m, err := x.do(during, wire.Message{ID: id, Method: method, Params: params})
	if !x.handed {
		cancel()
	}
	switch {
	case err == nil:
		return m, nil
	case x.elsewhere.Load() != nil:
		return *x.elsewhere.Load(), nil
	case ctx.Err() != nil:
		if !x.modern && !errors.Is(err, link.ErrClosed) && link.Cancellable(method) {
			h.sendCancelled(id, link.Reason(ctx))
		}
		return wire.Message{}, ctx.Err()
	case h.ctx.Err() != nil && !errors.Is(err, link.ErrClosed):
		return wire.Message{}, link.ErrLost
	case errors.Is(err, ErrSession):
		h.end(ErrSession)
	case errors.Is(err, link.ErrLost) && !x.modern && link.Cancellable(method):
		h.sendCancelled(id, "the answer was cut off")
	}
	return wire.Message{}, err
}

// Kept says whether a legacy server keeps a session, and so can ask in the midst of a request.
func (h *HTTP) Kept() bool { return h.session.Load().kept() }

// isModern says whether a message is of the modern generation.
func isModern(params json.RawMessage) bool {
	return wire.EraOf(wire.VersionOf(params)).Has(drawbridge.Modern)
}

// usable says why nothing can be sent, or nil.
func (h *HTTP) usable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if h.live.Err() == nil {
		return h.bad
	}
	if err := h.Err(); err != nil {
		return unsent{err}
	}
	return link.ErrClosed
}

// againAfter is how long a cancellation that went wrong waits for its second try.
const againAfter = 100 * time.Millisecond

// sendCancelled tells a legacy server that nobody waits for a request: to it, the end of the exchange means nothing. Nor does
// the end of the connection keep it from being told: it need not listen to the end of a session.
func (h *HTTP) sendCancelled(id []byte, reason string) {
	params := json.RawMessage(`{"requestId":` + string(id) + `,"reason":` + string(wire.Quote(reason)) + `}`)
	h.start(func() {
		ctx, cancel := context.WithTimeout(context.Background(), farewellTime)
		defer cancel()
		note := wire.Message{Method: wire.NoteCancelled, Params: params}
		err := h.send(ctx, note)
		if err != nil && pause(ctx, againAfter) { // what cut off the answer may have cut this off too
			err = h.send(ctx, note)
		}
		if err != nil {
			h.log.Debug("a cancellation was not sent", "error", err)
		}
	})
}

// Notify sends a notification and waits until the server has taken it.
func (h *HTTP) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if err := h.usable(ctx); err != nil {
		return err
	}
	during, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)()
	err := h.send(during, wire.Message{Method: method, Params: params})
	switch {
	case err == nil && method == wire.NoteInitialized && !isModern(params):
		h.listen()
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	}
	return err
}

// reply sends the answer to a request of the server.
func (h *HTTP) reply(ctx context.Context, m wire.Message) {
	if err := h.send(ctx, m); err != nil {
		h.log.Debug("an answer to the server was not sent", "error", err)
	}
}

// send posts a message that has no answer.
func (h *HTTP) send(ctx context.Context, m wire.Message) error {
	resp, err := h.target.post(ctx, h.headerFor(m), m)
	if err != nil {
		return err
	}
	if succeeded(resp) {
		finishBody(resp)
		return nil
	}
	body := errorBody(resp)
	if h.sessionOf(m).kept() && sessionGone(resp.StatusCode, body, 0) {
		h.end(ErrSession)
		return ErrSession
	}
	return statusError(resp, body)
}

// Done is closed when the connection has ended.
func (h *HTTP) Done() <-chan struct{} { return h.live.Done() }

// Err says why the connection has ended: it wraps ErrSession. It is nil before that, and where Close ended it.
func (h *HTTP) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// end marks the connection as ended. The first reason counts; nil is the reason of Close.
func (h *HTTP) end(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ended {
		h.ended, h.err = true, err
		h.done()
	}
}

// start runs work in a goroutine that Close waits for. It says false where Close has begun to wait.
func (h *HTTP) start(work func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.work.Go(work)
	}
	return !h.closed
}

// Close ends the connection: requests that wait, the stream, and the session on the server, which is told so. It returns
// when every goroutine has ended, or with the context's error.
func (h *HTTP) Close(ctx context.Context) error {
	h.end(nil)
	h.closing.Do(func() {
		h.mu.Lock()
		h.closed = true
		h.mu.Unlock()
		h.cancel()
		h.deleteSession(ctx)
		go func() {
			h.asks.Wait()
			h.work.Wait()
			if h.own != nil {
				h.own.CloseIdleConnections()
			}
			close(h.gone)
		}()
	})
	select {
	case <-h.gone:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// deleteSession tells the server that its session is over, as the specification asks. Servers need not listen.
func (h *HTTP) deleteSession(ctx context.Context) {
	s := h.session.Load()
	if !s.kept() || h.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, farewellTime)
	defer cancel()
	resp, err := h.target.do(ctx, http.MethodDelete, h.legacyHeader(s), nil)
	if err != nil {
		h.log.Debug("the server was not told of the end of its session", "error", err)
		return
	}
	finishBody(resp)
}

// A target is where requests go, and how.
type target struct {
	client *http.Client
	url    *url.URL
	host   string
	header http.Header // what goes with every request
	signer Signer
	max    int
}

func newTarget(o Options) (target, *http.Transport, error) {
	if o.MaxBody <= 0 {
		o.MaxBody = DefaultMaxBody
	}
	t := target{max: o.MaxBody, signer: o.Signer}
	client, own := clientOf(o)
	t.client = client
	var err error
	if t.url, err = parseURL(o.URL); err == nil {
		t.header, t.host, err = headerOf(o.Headers)
	}
	return t, own, err
}
