package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

const (
	// recheckTime is how often the tokens of requests in progress are looked at again.
	recheckTime = 30 * time.Second
	// patience is how long a request in progress goes on whose token cannot be looked at.
	patience = 2 * time.Minute
)

// A visit is a request in progress, and who sent it. A request may take hours: a stream, or a call that waits for a person.
type visit struct {
	caller drawbridge.Caller
	// token is what proved the caller for resource, good when that was found last, which has a lock in visits. It is empty for a
	// caller who need not prove anything, or who had the door's one token.
	token    drawbridge.Secret
	resource string
	good     time.Time
	// end ends the request, and life, which what it began has. Session is the session that it is of; nil where it is of none.
	// It has a lock in visits.
	end     context.CancelFunc
	life    context.Context
	session *session
}

// visits are the requests in progress whose tokens may come to their end before them.
type visits struct {
	mu  sync.Mutex
	all map[*visit]struct{}
}

// begin notes a visit until leave is called. The request that it gives ends with the visit.
func (s *visits) begin(v *visit, r *http.Request) (_ *http.Request, leave func()) {
	if v.token.IsZero() {
		v.life = context.Background()
		return r, func() {}
	}
	ctx, cancel := context.WithCancel(r.Context())
	v.life, v.end = context.WithCancel(context.Background())
	context.AfterFunc(v.life, cancel)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[*visit]struct{}{}
	}
	s.all[v] = struct{}{}
	return r.WithContext(ctx), func() {
		v.end()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.all, v)
	}
}

// at says that a visit is of a session, whose caller came with this token last.
func (s *visits) at(v *visit, c *session) {
	s.mu.Lock()
	v.session = c
	s.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.proof = v.token
}

// An ongoing is a visit as it is looked at: a client that has a fresh token uses it for the next request, and what is in
// progress in the same session goes on by that.
type ongoing struct {
	*visit
	session *session
	token   drawbridge.Secret
}

// lastProof is the token that the session's caller came with last.
func (c *session) lastProof() drawbridge.Secret {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.proof
}

func (s *visits) list() (all []ongoing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for v := range s.all {
		o := ongoing{v, v.session, v.token}
		if c := v.session; c != nil {
			o.token = c.lastProof()
		}
		all = append(all, o)
	}
	return all
}

// Recheck looks at the tokens of all requests in progress now, not in half a minute. What is in progress for a caller whose
// token has expired or was taken back ends, and with it the session that it is of; and so does what was begun with a right
// that the caller has no more.
func (s *Server) Recheck(ctx context.Context) {
	if s.o.Check == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, recheckTime)
	defer cancel()
	type proof struct {
		token    drawbridge.Secret
		resource string
	}
	visits := map[proof][]ongoing{}
	for _, v := range s.visits.list() {
		by := proof{v.token, v.resource}
		visits[by] = append(visits[by], v)
	}
	var looking sync.WaitGroup // side by side: one issuer that is away is not to hold up the others
	for by, them := range visits {
		looking.Go(func() {
			caller, err := s.o.Check.Authenticate(ctx, by.token.Reveal(), by.resource)
			for _, v := range them {
				s.settle(v, caller, err)
			}
		})
	}
	looking.Wait()
}

// settle ends a visit that is over by what its token proves now, unless its client came with another one meanwhile.
func (s *Server) settle(v ongoing, caller drawbridge.Caller, err error) {
	if v.session != nil && v.session.lastProof() != v.token {
		return
	}
	s.visits.mu.Lock()
	over, ended := v.judge(caller, err, time.Now())
	s.visits.mu.Unlock()
	if over {
		v.end()
	}
	if c := v.session; ended && c != nil && s.sessions.remove(c) {
		s.endSession(c)
	}
}

// judge says whether a visit is over, and its session with it, by what its token proves now.
func (v ongoing) judge(caller drawbridge.Caller, err error, now time.Time) (over, ended bool) {
	if err != nil {
		code := drawbridge.AsFault(err).Code
		over = code == drawbridge.AuthFailure || code == drawbridge.PolicyBlocked || now.Sub(v.good) >= patience
		return over, over
	}
	v.good = now
	if caller.Principal != v.caller.Principal {
		return true, true
	}
	return !caller.Holds(v.caller.Scopes), false
}
