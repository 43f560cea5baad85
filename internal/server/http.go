package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/bearer"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// Time limits of the HTTP endpoint. There is no time limit for a whole response, because a call may take any time.
const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	// writeTime is the time limit of one write to a client that does not read.
	writeTime = 30 * time.Second
	// drainTime is how long calls in progress may continue after the context of Serve has ended.
	drainTime = 5 * time.Second
)

// An httpHandler is the handler of the HTTP endpoint. Its streams end when ending is closed, and its calls end when
// life ends.
type httpHandler struct {
	s      *Server
	ending <-chan struct{}
	life   context.Context
	gate   closeGate
	// resource describes the endpoint for OAuth clients, and host is the host in the URL of resource. exposed reports
	// whether other machines can reach the endpoint.
	resource Resource
	host     string
	exposed  bool
}

// newHTTPHandler returns a handler for requests that arrive at the listener l. If l is nil, the embedding program has
// the listener, and the handler does not know whether other machines can reach it.
func (s *Server) newHTTPHandler(ending <-chan struct{}, life context.Context, l net.Listener) *httpHandler {
	d := &httpHandler{s: s, ending: ending, life: life, resource: s.o.Resource}
	if l != nil {
		d.exposed = s.isExposed(l)
		if d.resource.URL == "" && len(d.resource.Issuers) > 0 {
			d.resource.URL = "http://" + l.Addr().String() + Path
		}
	}
	if u, err := url.Parse(d.resource.URL); err == nil {
		d.host = u.Host
	}
	return d
}

// isExposed reports whether other machines can reach the endpoint on a listener, directly or through a proxy.
func (s *Server) isExposed(l net.Listener) bool {
	u, err := url.Parse(s.o.Resource.URL)
	return !isLoopbackAddr(l.Addr()) || err == nil && u.Host != "" && !isLoopbackHost(u.Host)
}

// Handler returns the handler of the MCP endpoint, with all checks of hosts, origins and tokens. It serves any path.
// The embedding program has the listener. If other machines can reach that listener and neither a token nor an
// authenticator is configured, the program must authenticate callers itself. Each request with an expired or revoked
// token is refused. To end requests in progress with such a token too, call RecheckCallers.
func (s *Server) Handler() http.Handler { return s.newHTTPHandler(s.life.Done(), s.life, nil) }

// CheckListener returns nil if Serve would serve on the listener. Call it before the listener's address is published.
// If other machines can reach the listener, directly or under the resource's URL, two conditions apply. Callers must
// authenticate. If issuers are configured, the resource must have a URL, so that callers find out where to get a token.
// If a condition is not met, CheckListener returns a *drawbridge.Fault with the code InvalidInput.
func (s *Server) CheckListener(l net.Listener) error {
	refused := func(reason, next string) error {
		return &drawbridge.Fault{
			Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: "serve on " + describeAddr(l.Addr()),
			Err: errors.New(reason), Next: next,
		}
	}
	if !s.isExposed(l) {
		return nil
	}
	if len(s.o.Resource.Issuers) > 0 && s.o.Resource.URL == "" {
		return refused("beyond loopback an issuer's tokens must name the URL that clients reach this endpoint by",
			"set serve.public_url in drawbridge.toml")
	}
	needed, err := s.authRequired(s.life)
	switch {
	case err != nil:
		return err
	case needed:
		return nil
	}
	otherwise := "bind 127.0.0.1"
	if isLoopbackAddr(l.Addr()) {
		otherwise = "remove serve.public_url from drawbridge.toml"
	}
	return refused("beyond loopback a bearer token is required",
		"set one with --token-file FILE or DRAWBRIDGE_TOKEN, or one for each client with drawbridge client add NAME; or "+otherwise)
}

// describeAddr returns an address for messages to people. The wildcard address is always written as 0.0.0.0.
func describeAddr(addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return net.JoinHostPort("0.0.0.0", strconv.Itoa(tcp.Port))
	}
	return addr.String()
}

// Serve serves HTTP on the listener until ctx ends, with MCP at [Path]. When ctx ends, streams end, calls in progress
// may continue for drainTime, and the listener is closed. If [Server.CheckListener] refuses the listener, Serve returns
// that error. If Serve returns because ctx has ended, it returns the error of ctx.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if err := s.CheckListener(l); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	calls, endCalls := context.WithCancel(s.life)
	defer endCalls()
	defer context.AfterFunc(s.life, cancel)()
	d := s.newHTTPHandler(ctx.Done(), calls, l)
	mux := http.NewServeMux()
	mux.Handle(Path, d)
	mux.HandleFunc(HealthPath, d.serveHealth)
	mux.HandleFunc(MetricsPath, d.serveMetrics)
	mux.Handle(bearer.MetadataPath, d.metadata())
	mux.Handle(bearer.MetadataPath+"/", d.metadata())
	web := &http.Server{
		Handler:           withBodyDeadlines(mux, writeTime),
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	var own sync.WaitGroup
	own.Go(func() { s.runSweeper(ctx) })
	own.Go(func() {
		<-ctx.Done()
		grace, done := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
		defer done()
		_ = web.Shutdown(grace) // the remaining connections are closed next
		endCalls()
		_ = web.Close()
		d.gate.shut()
	})
	err := web.Serve(l)
	cancel()
	own.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return ctx.Err()
	}
	return err
}

// ServeHTTP responds to one HTTP request.
func (d *httpHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !d.s.gate.enter() {
		http.Error(w, "Service Unavailable: closing", http.StatusServiceUnavailable)
		return
	}
	defer d.s.gate.leave()
	if !d.gate.enter() {
		http.Error(w, "Service Unavailable: closing", http.StatusServiceUnavailable)
		return
	}
	defer d.gate.leave()
	if len(r.TransferEncoding) > 0 {
		// If the request also had a Content-Length, which net/http has removed, a proxy may see another end of the
		// body. RFC 9112, section 6.1, requires to close the connection then.
		w.Header().Set("Connection", "close")
	}
	if !d.checkHostAndOrigin(w, r) {
		return
	}
	if r.Method == http.MethodOptions {
		respondPreflight(w, r) // a browser's preflight request has no token
		return
	}
	v, ok := d.authenticate(w, r)
	if !ok {
		return
	}
	r, leave := d.s.ongoing.track(v, r)
	defer leave()
	switch r.Method {
	case http.MethodPost:
		d.servePost(w, r, v)
	case http.MethodGet:
		if r.ContentLength != 0 { // the body is ignored, but an unread body would block a stream
			if _, ok := readBody(w, r, d.s.o.MaxBody); !ok {
				return
			}
		}
		d.serveGet(w, r, v)
	case http.MethodDelete:
		d.serveDelete(w, r, v)
	default:
		w.Header().Set("Allow", "POST, GET, DELETE")
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
	}
}

// servePost handles the messages of a POST request. The protocol generation is determined for each message.
func (d *httpHandler) servePost(w http.ResponseWriter, r *http.Request, v *authenticatedRequest) {
	if !hasJSONBody(r) {
		http.Error(w, "Unsupported Media Type: want application/json", http.StatusUnsupportedMediaType)
		return
	}
	x := newPostExchange(d, w, r, v)
	if !x.json && !x.stream {
		http.Error(w, "Not Acceptable: responses are application/json and text/event-stream", http.StatusNotAcceptable)
		return
	}
	defer x.close()
	body, ok := readBody(w, r, d.s.o.MaxBody)
	if !ok {
		return
	}
	version := r.Header.Get(mcp.HeaderVersion)
	if mcp.IsBatch(body) {
		if mcp.EraOf(version) == drawbridge.Modern {
			x.respond(nil, http.StatusBadRequest, noBatches())
			return
		}
		d.legacyBatch(x, body)
		return
	}
	l, err := readIncoming(body)
	leave, ok := d.limitInProgress(x, l)
	if !ok {
		return
	}
	defer leave()
	meta, isModern := readModernMeta(body, l.Message)
	switch {
	case err != nil:
		x.respond(nil, http.StatusBadRequest, failureReply(mcp.CodeParse, "Parse error: "+err.Error(), nil))
	case !l.refusal.isNone():
		x.respond(l.refusalID, http.StatusBadRequest, l.refusal)
	case isModern || mcp.EraOf(version) == drawbridge.Modern:
		d.modernPost(x, l.Message, meta)
	default:
		d.legacyPost(x, l.Message)
	}
}

// limitInProgress limits the number of requests in progress of one principal. If one of the messages is a request, the
// messages count as one request until leave is called. Messages without a request are always admitted, because a
// request in progress may wait for them. If there are too many requests, limitInProgress sends an error response and
// returns false.
func (d *httpHandler) limitInProgress(x *postExchange, letters ...incoming) (leave func(), ok bool) {
	i := slices.IndexFunc(letters, func(l incoming) bool { return l.IsRequest() })
	if i < 0 {
		return func() {}, true
	}
	if leave, ok = d.s.postLimiter.acquire(x.auth.caller.Principal); !ok {
		x.w.Header().Set("Retry-After", "1")
		x.respond(letters[i].ID, http.StatusTooManyRequests, failureReply(mcp.CodeInternal,
			"Too many requests are in progress", nil))
	}
	return leave, ok
}

// modernPost responds to a message of a stateless client. meta is the data about the client in the message.
func (d *httpHandler) modernPost(x *postExchange, m mcp.Message, meta mcp.RequestMeta) {
	if !m.IsRequest() {
		// Notifications and responses have no effect: no server waits for notifications of a stateless client, and this
		// server sends such a client no requests.
		x.respondAccepted()
		return
	}
	st, refusal := d.s.readClientInfo(x.auth.caller, meta)
	caller := st.caller
	if refusal.isNone() || mcp.ErrorCode(refusal.fault) == mcp.CodeUnsupportedVersion {
		if mismatch := checkHeaders(x.r.Header, m, caller.Protocol); !mismatch.isNone() {
			refusal = mismatch
		}
	}
	if refusal.isNone() && m.Method == mcp.MethodToolsCall {
		refusal = d.s.checkParamHeaders(x.r.Header, caller, m.Params)
	}
	switch {
	case !refusal.isNone():
		x.respond(m.ID, httpStatus(refusal), refusal)
		return
	case m.Method == mcp.MethodListen:
		d.serveListen(x, caller, m)
		return
	}
	ctx, cancel := context.WithCancel(x.r.Context())
	defer cancel()
	defer context.AfterFunc(d.life, cancel)()
	x.startKeepAlive(d.s.o.KeepAlive)
	answer := d.s.handleModern(ctx, caller, m, &requestPeer{sender: x, level: st.level})
	x.respond(m.ID, httpStatus(answer), answer)
}
