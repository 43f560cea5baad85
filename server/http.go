package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/server/bearer"
	"github.com/drawbridge-mcp/drawbridge/server/entry"
	"github.com/drawbridge-mcp/drawbridge/server/head"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// Time limits of the HTTP door. Answers have none: a call takes as long as it takes.
const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	// writeTime is how long one write may be stuck in a client that does not read.
	writeTime = 30 * time.Second
	// drainTime is what calls in progress get to end when Serve is told to.
	drainTime = 5 * time.Second
)

// A door is the HTTP endpoint. When ending is closed its streams end, and with life its calls.
type door struct {
	s      *Server
	ending <-chan struct{}
	life   context.Context
	inside entry.Gate
	// resource is the door as OAuth clients know it, host the host of its URL; beyond says that others than this machine
	// reach it.
	resource Resource
	host     string
	beyond   bool
}

// newDoor makes a door on a listener; nil is one that somebody else has.
func (s *Server) newDoor(ending <-chan struct{}, life context.Context, l net.Listener) *door {
	d := &door{s: s, ending: ending, life: life, resource: s.o.Resource}
	if l != nil {
		d.beyond = s.beyond(l)
		if d.resource.URL == "" && len(d.resource.Issuers) > 0 {
			d.resource.URL = "http://" + l.Addr().String() + Path
		}
	}
	if u, err := url.Parse(d.resource.URL); err == nil {
		d.host = u.Host
	}
	return d
}

// beyond says whether others than this machine reach the door on a listener: themselves, or by what passes their requests on.
func (s *Server) beyond(l net.Listener) bool {
	u, err := url.Parse(s.o.Resource.URL)
	return !isLoopback(l.Addr()) || err == nil && u.Host != "" && !head.IsThisMachine(u.Host)
}

// Handler gives the MCP endpoint, on whatever path it is mounted, with all its checks. Who mounts it on a listener that
// others than this machine reach, and has set neither a token nor a check that is needed, must check callers before it. That
// a token has expired or was revoked is noticed at each request, and of what is in progress when Recheck is called.
func (s *Server) Handler() http.Handler { return s.newDoor(s.life.Done(), s.life, nil) }

// CheckListener says whether Serve would answer on the listener, for those who want to know before they tell anybody its
// address. The error is a *drawbridge.Fault InvalidInput for one that others than this machine reach, by itself or under the
// resource's URL, where nobody has to prove who they are, or clients could not know whom to ask for a token.
func (s *Server) CheckListener(l net.Listener) error {
	refused := func(reason, next string) error {
		return &drawbridge.Fault{
			Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: "serve on " + l.Addr().String(),
			Err: errors.New(reason), Next: next,
		}
	}
	if !s.beyond(l) {
		return nil
	}
	if len(s.o.Resource.Issuers) > 0 && s.o.Resource.URL == "" {
		return refused("beyond loopback an issuer's tokens must name the URL that clients reach this door by", "set serve.public_url in drawbridge.toml")
	}
	needed, err := s.proofNeeded(s.life)
	switch {
	case err != nil:
		return err
	case needed:
		return nil
	}
	otherwise := "bind 127.0.0.1"
	if isLoopback(l.Addr()) {
		otherwise = "take serve.public_url out of drawbridge.toml"
	}
	return refused("beyond loopback a bearer token is needed",
		"set one with --token-file FILE or DRAWBRIDGE_TOKEN, or one for each client with drawbridge client add NAME; or "+otherwise)
}

// Serve answers HTTP on the listener, MCP at [Path], until ctx ends: then streams end, calls in progress get a few seconds,
// and the listener is closed. It refuses what [Server.CheckListener] refuses. The error is the context's where the context
// ended it.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if err := s.CheckListener(l); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	calls, endCalls := context.WithCancel(s.life)
	defer endCalls()
	defer context.AfterFunc(s.life, cancel)()
	d := s.newDoor(ctx.Done(), calls, l)
	mux := http.NewServeMux()
	mux.Handle(Path, d)
	mux.Handle(bearer.WellKnown, d.metadata())
	mux.Handle(bearer.WellKnown+"/", d.metadata())
	web := &http.Server{
		Handler:           entry.InTime(mux, writeTime),
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	var own sync.WaitGroup
	own.Go(func() { s.sweeping(ctx) })
	own.Go(func() {
		<-ctx.Done()
		grace, done := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
		defer done()
		_ = web.Shutdown(grace) // what is left is ended now
		endCalls()
		_ = web.Close()
		d.inside.Shut()
	})
	err := web.Serve(l)
	cancel()
	own.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return ctx.Err()
	}
	return err
}

// ServeHTTP answers one HTTP request.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !d.s.inside.Enter() {
		http.Error(w, "Service Unavailable: closing", http.StatusServiceUnavailable)
		return
	}
	defer d.s.inside.Leave()
	if !d.inside.Enter() {
		http.Error(w, "Service Unavailable: closing", http.StatusServiceUnavailable)
		return
	}
	defer d.inside.Leave()
	if !d.guard(w, r) {
		return
	}
	if r.Method == http.MethodOptions {
		head.Preflight(w, r) // a browser's question before the request, which has no token
		return
	}
	v, ok := d.prove(w, r)
	if !ok {
		return
	}
	r, leave := d.s.visits.begin(v, r)
	defer leave()
	switch r.Method {
	case http.MethodPost:
		d.post(w, r, v)
	case http.MethodGet:
		if r.ContentLength != 0 { // it says nothing to us, and is in the way of a stream
			if _, ok := entry.Body(w, r, d.s.o.MaxBody); !ok {
				return
			}
		}
		d.get(w, r, v)
	case http.MethodDelete:
		d.delete(w, r, v)
	default:
		w.Header().Set("Allow", "POST, GET, DELETE")
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
	}
}

// post takes messages from a client: it finds out which generation they are of.
func (d *door) post(w http.ResponseWriter, r *http.Request, v *visit) {
	if !head.IsJSON(r) {
		http.Error(w, "Unsupported Media Type: want application/json", http.StatusUnsupportedMediaType)
		return
	}
	x := newExchange(d, w, r, v)
	if !x.json && !x.stream {
		http.Error(w, "Not Acceptable: answers are application/json and text/event-stream", http.StatusNotAcceptable)
		return
	}
	defer x.close()
	body, ok := entry.Body(w, r, d.s.o.MaxBody)
	if !ok {
		return
	}
	version := r.Header.Get(wire.HeaderVersion)
	if wire.IsBatch(body) {
		if wire.EraOf(version) == drawbridge.Modern {
			x.answer(nil, http.StatusBadRequest, noBatches())
			return
		}
		d.legacyBatch(x, body)
		return
	}
	l, err := readLetter(body)
	leave, ok := d.enter(x, l)
	if !ok {
		return
	}
	defer leave()
	switch {
	case err != nil:
		x.answer(nil, http.StatusBadRequest, failure(wire.CodeParse, "Parse error: "+err.Error(), nil))
	case !l.refusal.isNone():
		x.answer(l.to, http.StatusBadRequest, l.refusal)
	case wire.EraOf(version) == drawbridge.Modern || saysModern(body, l.Message):
		d.modernPost(x, l.Message)
	default:
		d.legacyPost(x, l.Message)
	}
}

// enter lets messages in until leave is called, unless there is a request among them and its caller has too many in progress. What is
// none may always come in: a request may wait for it. It says false where it has answered itself.
func (d *door) enter(x *exchange, letters ...letter) (leave func(), ok bool) {
	i := slices.IndexFunc(letters, func(l letter) bool { return l.IsRequest() })
	if i < 0 {
		return func() {}, true
	}
	if leave, ok = d.s.posts.Enter(x.visit.caller.Principal); !ok {
		x.w.Header().Set("Retry-After", "1")
		x.answer(letters[i].ID, http.StatusTooManyRequests, failure(wire.CodeInternal, "Too many requests are in progress", nil))
	}
	return leave, ok
}

// modernPost answers a message of a stateless client.
func (d *door) modernPost(x *exchange, m wire.Message) {
	if !m.IsRequest() {
		// There is no notification that a server waits for, and no request of ours to respond to.
		x.accepted()
		return
	}
	st, refusal := d.s.stated(x.visit.caller, m.Params)
	caller := st.caller
	if refusal.isNone() || wire.ErrorCode(refusal.fault) == wire.CodeUnsupportedVersion {
		if mismatch := checkHeaders(x.r.Header, m, caller.Protocol); !mismatch.isNone() {
			refusal = mismatch
		}
	}
	if refusal.isNone() && m.Method == wire.MethodToolsCall {
		refusal = d.s.checkMarks(x.r.Header, caller, m.Params)
	}
	switch {
	case !refusal.isNone():
		x.answer(m.ID, statusOf(refusal), refusal)
		return
	case m.Method == wire.MethodListen:
		d.listen(x, caller, m)
		return
	}
	ctx, cancel := context.WithCancel(x.r.Context())
	defer cancel()
	defer context.AfterFunc(d.life, cancel)()
	x.alive(d.s.o.KeepAlive)
	answer := d.s.modern(ctx, caller, m, &peer{voice: x, level: st.level})
	x.answer(m.ID, statusOf(answer), answer)
}
