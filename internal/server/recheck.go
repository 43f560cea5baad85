package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

const (
	// recheckInterval is how often the tokens of requests in progress are looked at again.
	recheckInterval = 30 * time.Second
	// recheckGrace is how long a request in progress goes on whose token cannot be looked at.
	recheckGrace = 2 * time.Minute
)

// A authenticatedRequest is a request in progress, and who sent it. A request may take hours: a stream, or a call that
// waits for a person.
type authenticatedRequest struct {
	caller drawbridge.Caller
	// token is the caller's token for resource, and good the time of its last verification, which the mutex of the
	// table guards. The token is empty for a caller that need not authenticate or used the fixed token.
	token      drawbridge.Secret
	resource   string
	verifiedAt time.Time
	// end ends the request. session is its session; nil if it has none. The mutex of the table guards it.
	end     context.CancelFunc
	life    context.Context
	session *session
}

// ongoingRequests are the requests in progress whose tokens may expire before they end.
type ongoingRequests struct {
	mu  sync.Mutex
	all map[*authenticatedRequest]struct{}
}

// track records a request until leave is called. The returned request ends when its token does.
func (s *ongoingRequests) track(v *authenticatedRequest, r *http.Request) (_ *http.Request, leave func()) {
	if v.token.IsZero() {
		v.life = context.WithoutCancel(r.Context())
		return r, func() {}
	}
	ctx, cancel := context.WithCancel(r.Context())
	v.life, v.end = context.WithCancel(context.WithoutCancel(r.Context()))
	context.AfterFunc(v.life, cancel)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[*authenticatedRequest]struct{}{}
	}
	s.all[v] = struct{}{}
	return r.WithContext(ctx), func() {
		v.end()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.all, v)
	}
}

// setSession records that a request belongs to a session, whose caller used this token last.
func (s *ongoingRequests) setSession(v *authenticatedRequest, c *session) {
	s.mu.Lock()
	v.session = c
	s.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.proof = v.token
}

// A requestSnapshot is a copy of a request's state for a recheck. A client with a fresh token uses it for its next
// request; older requests of the same session then continue by it.
type requestSnapshot struct {
	*authenticatedRequest
	session *session
	token   drawbridge.Secret
}

// lastToken is the token that the session's caller came with last.
func (c *session) lastToken() drawbridge.Secret {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.proof
}

func (s *ongoingRequests) snapshot() (all []requestSnapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for v := range s.all {
		o := requestSnapshot{v, v.session, v.token}
		if c := v.session; c != nil {
			o.token = c.lastToken()
		}
		all = append(all, o)
	}
	return all
}

// RecheckCallers verifies the tokens of all requests in progress now, instead of within half a minute. If a token
// expired or was revoked, its requests and their session end. Work that a caller has lost the right to ends too.
func (s *Server) RecheckCallers(ctx context.Context) {
	if s.o.Authenticator == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, recheckInterval)
	defer cancel()
	type proof struct {
		token    drawbridge.Secret
		resource string
	}
	visits := map[proof][]requestSnapshot{}
	for _, v := range s.ongoing.snapshot() {
		by := proof{v.token, v.resource}
		visits[by] = append(visits[by], v)
	}
	var looking sync.WaitGroup // side by side: one issuer that is away is not to hold up the others
	for by, them := range visits {
		looking.Go(func() {
			caller, err := s.o.Authenticator.Authenticate(ctx, by.token.Reveal(), by.resource)
			for _, v := range them {
				s.applyRecheck(v, caller, err)
			}
		})
	}
	looking.Wait()
}

// applyRecheck ends a request whose token is no longer valid, unless its client has sent another one meanwhile.
func (s *Server) applyRecheck(v requestSnapshot, caller drawbridge.Caller, err error) {
	if v.session != nil && v.session.lastToken() != v.token {
		return
	}
	s.ongoing.mu.Lock()
	over, ended := v.judgeRecheck(caller, err, time.Now())
	s.ongoing.mu.Unlock()
	if over {
		v.end()
	}
	if c := v.session; ended && c != nil && s.sessions.remove(c) {
		s.endSession(c)
	}
}

// judgeRecheck reports whether a request is over, and its session with it, by what its token proves now.
func (v requestSnapshot) judgeRecheck(caller drawbridge.Caller, err error, now time.Time) (over, ended bool) {
	if err != nil {
		code := drawbridge.AsFault(err).Code
		over = code == drawbridge.AuthFailure || code == drawbridge.PolicyBlocked ||
			now.Sub(v.verifiedAt) >= recheckGrace
		return over, over
	}
	v.verifiedAt = now
	if caller.Principal != v.caller.Principal {
		return true, true
	}
	return !caller.HasScopes(v.caller.Scopes), false
}
