package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

const (
	// recheckInterval is the interval between two verifications of the tokens of requests in progress.
	recheckInterval = 30 * time.Second
	// recheckGrace is how long a request in progress may continue if its token cannot be verified, for example because
	// the issuer cannot be reached.
	recheckGrace = 2 * time.Minute
)

// An authenticatedRequest is a request in progress with its authenticated sender. A request may take hours: it may be a
// stream, or a call that waits for a person. So its token is verified again while it runs.
type authenticatedRequest struct {
	caller drawbridge.Caller
	// token is the caller's token for resource. It is empty for a caller that need not authenticate or that used
	// Options.Token. verifiedAt is the time when the token was last verified; the mutex of ongoingRequests guards it.
	token      drawbridge.Secret
	resource   string
	verifiedAt time.Time
	// life is the context of the request that does not end with the connection; end cancels it. session is the session
	// of the request; nil if it has none. The mutex of ongoingRequests guards session.
	end     context.CancelFunc
	life    context.Context
	session *session
}

// ongoingRequests is the table of the requests in progress whose tokens may become invalid before they end.
type ongoingRequests struct {
	mu  sync.Mutex
	all map[*authenticatedRequest]struct{}
}

// track adds a request with a token to the table until leave is called. The context of the returned request ends when
// the token becomes invalid.
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

// setSession stores that a request belongs to a session. It also stores the request's token as the last token that the
// session's client has used.
func (s *ongoingRequests) setSession(v *authenticatedRequest, c *session) {
	s.mu.Lock()
	v.session = c
	s.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.proof = v.token
}

// A requestSnapshot is a request in progress, with its session and the token to verify. If the client has sent a later
// request of the session with a new token, token is the new token. Older requests of the session then continue with the
// new token.
type requestSnapshot struct {
	*authenticatedRequest
	session *session
	token   drawbridge.Secret
}

// lastToken returns the token of the last request of the session.
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

// RecheckCallers verifies the tokens of all requests in progress now, instead of at the next interval. If a token has
// expired or was revoked, the requests with this token and their session end. If a caller has lost a scope that it had
// at the start of a request, that request ends too.
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
	var looking sync.WaitGroup // in parallel, so that one unreachable issuer does not delay the others
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

// applyRecheck ends a request if the verification of its token failed. caller and err are the result of the
// verification. It does nothing if the client has sent a request of the same session with another token meanwhile.
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

// judgeRecheck reports whether a request must end, and whether its session must end too. caller and err are the result
// of the verification of its token.
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
