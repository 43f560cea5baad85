package bridge

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge/exchange"
	"github.com/drawbridge-mcp/drawbridge/bridge/link"
	"github.com/drawbridge-mcp/drawbridge/bridge/process"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A key says whose a session is: callers with the same key share it.
type key struct {
	// era is zero for the endpoint's home, the session that is kept and listed: what it speaks is found out.
	era       drawbridge.Era
	principal string
	// session is the caller's own session, for one who shares with nobody.
	session string
	// client is what stateless callers say of themselves, for a session that was opened with that; lane tells those apart
	// that have one call at a time, and is zero for one that calls share.
	client string
	lane   int
	// once says that the session ends with its first call, lasting that it is for stateful callers of a kind, who share it for
	// as long as they like.
	once, lasting bool
}

// A session is one live connection with a server, greeted and ready for calls.
type session struct {
	e   *endpoint
	key key
	// opener is the call that a session of its own was opened for; nil for shared ones.
	opener *drawbridge.Call

	conn link.Conn
	proc *process.Process // nil for a server over HTTP
	junk atomic.Int64

	// What the greeting brought.
	era                drawbridge.Era // what is spoken here
	version            string
	info, capabilities json.RawMessage
	instructions       string
	hint               *drawbridge.Hint

	// lost is closed when the session is not to be used any more.
	lost   chan struct{}
	losing sync.Once
	cause  error // set before lost is closed

	began  bool   // there was a call; guarded by e.mu
	first  string // the session of the first caller, and whether there were others; guarded by e.mu
	many   bool
	levels sync.Mutex // is held while the level is set
	level  string     // of log lines, as the server was told it

	// The rest is guarded by e.mu. opening is the home's, which ends when what it lists was told, and unlisted why its tools are
	// only known from before.
	opening  *opening
	unlisted error
	busy     int                  // how many borrowed the session
	calls    []*exchange.Exchange // the calls in flight, newest last
	used     time.Time
}

var _ link.Handler = (*session)(nil)
var _ exchange.Waker = (*session)(nil)

func newSession(e *endpoint, k key) *session {
	return &session{e: e, key: k, lost: make(chan struct{}), used: time.Now()}
}

// own says whether the session is one stateful caller's.
func (s *session) own() bool { return s.key.session != "" }

// frank says whether the server was told what the callers of this session can be asked. Of the home's callers it was
// told that they can be asked everything, and hears otherwise when it asks.
func (s *session) frank() bool { return s.own() || s.key.client != "" }

// lasts says whether the session is one of stateful callers, beside the home: their own, or that of their kind.
func (s *session) lasts() bool { return s.own() || s.key.lasting }

// sole says whether all calls were one caller's, so that what the server asks can be nobody else's.
func (s *session) sole() bool {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	return s.own() || s.key.lasting && !s.many
}

// of says whether the session is, so far, that of the caller with a session of that name.
func (s *session) of(session string) bool {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	return s.key.session == session || s.key.lasting && !s.many && s.first == session
}

// home says whether this is the session that is kept and listed.
func (s *session) home() bool { return s.key.era == 0 }

// lose has the session's keeper close it. The first cause counts.
func (s *session) lose(cause error) {
	s.losing.Do(func() {
		s.cause = cause
		close(s.lost)
	})
}

// close ends the connection and the process under it. An early end of ctx makes it rough.
func (s *session) close(ctx context.Context) {
	if s.conn == nil {
		return
	}
	if err := s.conn.Close(ctx); err != nil {
		s.e.log.Debug("a connection did not end in good order", "error", err)
	}
}

// ending says why the session is over, once it is. What the process ended with says more than the end of its output.
func (s *session) ending() error {
	if isClosed(s.lost) {
		return s.cause
	}
	err := s.conn.Err()
	if s.proc == nil {
		return err
	}
	timer := time.NewTimer(processEnd)
	defer timer.Stop()
	select {
	case <-s.proc.Done():
		return s.proc.Exit()
	case <-timer.C:
		return err
	}
}

// processEnd is how long the end of a process may come after the end of its output.
const processEnd = time.Second

// Notify takes what the server says outside any call.
func (s *session) Notify(method string, params json.RawMessage) {
	switch method {
	case wire.NoteToolsChanged, wire.NotePromptsChanged, wire.NoteResourcesChanged:
		s.missed()
		return
	case wire.NoteProgress, wire.NoteListenAck, wire.NoteCancelled:
		return // late, or of no meaning to anybody
	case wire.NoteTask:
		params = s.e.pool.o.Elicitation.NamedIn(s.e.row.ID, params)
	}
	if x := s.only(); x != nil && !link.AboutServer(method) {
		x.Notify(method, params)
		return
	}
	// What another principal's connection says is for that principal, whom nobody here can reach outside a call, and so is
	// what comes on a connection of stateless callers.
	reachable := s.lasts() || s.key.principal == s.e.pool.o.Principal && s.key.client == ""
	if reachable {
		n := drawbridge.Notice{Server: s.e.row.ID, Session: s.key.session, Method: method, Params: params}
		if s.own() || !link.AboutServer(method) || s.e.row.URL == "" && s.e.row.Share != "all" {
			n.Principal = s.key.principal // else the same is so for everybody who is served by this connection
		}
		s.e.notice(n)
	}
}

// missed has the server listed again: something has changed, or may have.
func (s *session) missed() {
	if s.home() || s.mirrors() {
		signal(s.e.changed)
		s.e.relistSpared()
	}
}

// only gives the call that what the server says must belong to, as far as we can tell and the connection, which counts
// our own requests too, cannot: the only one in flight, or, where all are of one caller, the newest.
func (s *session) only() *exchange.Exchange {
	calls := s.inFlight()
	if n := len(calls); n == 1 || n > 1 && s.sole() {
		return calls[n-1]
	}
	return nil
}

// inFlight gives the calls in flight, the newest last.
func (s *session) inFlight() []*exchange.Exchange {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	return slices.Clone(s.calls)
}

// Ask answers a request that belongs to no call, as far as the connection can tell. Before there was a call it goes to the
// one that the session is opened for, and where all calls are one caller's also later.
func (s *session) Ask(ctx context.Context, method string, params json.RawMessage) (result, errorObject json.RawMessage) {
	calls := s.inFlight()
	switch {
	case len(calls) == 1:
		return calls[0].Ask(ctx, method, params)
	case len(calls) > 1 && s.sole():
		return s.askForOneOf(ctx, calls, method, params)
	case s.opener != nil && (s.sole() || !s.hasBegun()):
		return s.AskFor(ctx, *s.opener, method, params)
	case s.opener != nil && s.key.client != "" && method == wire.MethodRootsList && wire.MayAsk(s.opener.Caller.Capabilities, method, params):
		// No answer is better than ours: a server that asks some time after the greeting keeps what it hears for good.
		return nil, wire.ErrorObject(wire.CodeInternal, "roots/list: the client can be asked in the course of a call", nil)
	}
	return s.AskFor(ctx, drawbridge.Call{}, method, params)
}

// askForOneOf asks the caller whose calls these all are. Which of them the question belongs to nobody can tell: so the time
// of all stands still meanwhile, and the question is there for as long as one of them is.
func (s *session) askForOneOf(ctx context.Context, calls []*exchange.Exchange, method string, params json.RawMessage) (result, errorObject json.RawMessage) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var left atomic.Int32
	left.Store(int32(len(calls)))
	for _, x := range calls {
		defer x.Hold()()
		defer context.AfterFunc(x.Context(), func() {
			if left.Add(-1) == 0 {
				cancel()
			}
		})()
	}
	return s.AskFor(ctx, calls[len(calls)-1].Call(), method, params)
}

// Wake has a server on pipes read one more line: a request that costs it nothing. Programs made with Go 1.26 can stand still
// for a minute until they do, see package stdin.
func (s *session) Wake() { link.Wake(s.conn, s.ours(nil)) }

// over says whether the session can be used no more.
func (s *session) over() bool { return isClosed(s.lost) || isClosed(s.conn.Done()) }

// enter notes a call in flight. It says false for a session that is over. It needs e.mu.
func (s *session) enter() bool {
	if s.over() {
		return false
	}
	s.busy++
	return true
}

// leave notes the end of a call. It needs e.mu.
func (s *session) leave() {
	s.busy--
	s.used = time.Now()
}

// begin and finish keep the calls in flight.
func (s *session) begin(x *exchange.Exchange) {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	s.calls = append(s.calls, x)
	if caller := x.Call().Caller.Session; !s.began {
		s.first = caller
	} else if caller != s.first {
		s.many = true
	}
	s.began = true
}

func (s *session) finish(x *exchange.Exchange) {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	if i := slices.Index(s.calls, x); i >= 0 {
		s.calls = slices.Delete(s.calls, i, i+1)
	}
}

// hasBegun says whether there was a call on the session.
func (s *session) hasBegun() bool {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	return s.began
}

// signal wakes whoever waits on c, now or next.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
