package oauth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/safehttp"
)

// beginSignIn begins a sign-in whose response arrives from a browser on this machine, or is pasted by the person. If a
// sign-in with the same parameters is already pending, its address is returned again.
func (c *Credential) beginSignIn(ctx context.Context) (*Flow, error) {
	r, demand, unlock, err := c.lockAndLoad(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	f, err := c.prepareSignIn(ctx, r, demand, c.grantedAndMissingScopes(r))
	if err == nil {
		c.mu.Lock()
		c.lastPrepared = preparedSignIn{} // later calls use this sign-in, not the error of an earlier attempt
		c.mu.Unlock()
	}
	return f, err
}

// lockAndLoad locks the credential, and returns its record and the server's challenge. The caller must call unlock.
func (c *Credential) lockAndLoad(ctx context.Context) (r credentialRecord, demand AuthChallenge,
	unlock func(), err error) {
	if unlock, err = c.lockCredential(ctx); err != nil {
		return credentialRecord{}, AuthChallenge{}, nil, err
	}
	if r, err = c.currentRecord(); err == nil {
		demand, err = c.currentChallenge(ctx)
	}
	if err != nil {
		unlock()
		return credentialRecord{}, AuthChallenge{}, nil, err
	}
	return r, demand, unlock, nil
}

// grantedAndMissingScopes returns the granted scopes and the missing scopes, which the server required in its last
// response with status 403. It returns nil if no scopes are missing.
func (c *Credential) grantedAndMissingScopes(r credentialRecord) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.missingScopes) == 0 {
		return nil
	}
	return mergeScopes(r.Scopes, c.missingScopes)
}

// prepareSignIn discovers the authorization server, registers a client if necessary, and stores a pending sign-in. It
// returns the Flow of that sign-in. scopes are the scopes to request; nil means that chooseScopes chooses them. The
// caller holds the lock of lockCredential.
func (c *Credential) prepareSignIn(ctx context.Context, r credentialRecord, demand AuthChallenge,
	scopes []string) (*Flow, error) {
	redirects, err := c.redirectURIs(r)
	if err != nil {
		return nil, err
	}
	s := r.AuthServer // for more scopes, the authorization server stays the same
	if len(scopes) == 0 || s.Authorization == "" {
		if s, err = c.discoverAuthServer(ctx, demand); err != nil {
			return nil, err
		}
	}
	if s.Authorization == "" {
		return nil, errors.New("the authorization server does not name an authorization endpoint")
	}
	if err := s.validate(); err != nil {
		return nil, err
	}
	if err := c.checkEndpoints(r, s, s.Authorization); err != nil {
		return nil, err
	}
	scopes = c.chooseScopes(s, demand, scopes)
	r.dropExpiredPending(c.manager.times())
	c.endExpiredFlows(r)
	for _, p := range r.Pending {
		if redirects[0] == p.Redirect && slices.Equal(p.Scopes, scopes) && p.AuthServer.Issuer == s.Issuer &&
			p.AuthServer.Authorization == s.Authorization && p.AuthServer.Token == s.Token && c.manager.callbacks.expects(p.State) {
			return c.newFlow(p), nil
		}
	}
	who, err := c.clientFor(ctx, s, r, redirects)
	if err != nil {
		return nil, err
	}
	p := c.newPendingSignIn(s, who, scopes, redirects)
	if err := safehttp.CheckURL(p.URL); err != nil {
		return nil, fmt.Errorf("the address to sign in at %w", err)
	}
	r.rememberClient(who, s)
	r.Pending = append(r.Pending, p)
	r.dropExpiredPending(c.manager.times())
	c.endExpiredFlows(r)
	if err := c.lockAndSave(r); err != nil {
		return nil, err
	}
	return c.newFlow(p), nil
}

// endExpiredFlows ends the flows whose sign-in is not pending in r any more: the sign-in expired, was removed because
// there were more than maxPending, or was completed by another process.
func (c *Credential) endExpiredFlows(r credentialRecord) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for state, end := range c.openFlows {
		if r.hasPending(state) {
			continue
		}
		if r.Access == "" || r.Issued.Before(end.started) {
			end.err = context.DeadlineExceeded
		}
		close(end.done)
		delete(c.openFlows, state)
		c.manager.callbacks.forget(state)
	}
}

// A preparedSignIn is the result of the last attempt to prepare a sign-in: the state of the sign-in, or an error. Until
// the time until, calls with the same challenge reuse the result without any request.
type preparedSignIn struct {
	challengeKey string
	state        string
	err          error
	until        time.Time
}

const (
	// unavailablePause is how long the error of an unavailable authorization server is reused. notFoundPause is how
	// long any other error is reused.
	unavailablePause, notFoundPause = 5 * time.Second, 5 * time.Minute
)

// prepareSignInOnce is prepareSignIn with a cache: calls with the same challenge share one sign-in or one error.
func (c *Credential) prepareSignInOnce(ctx context.Context, demand AuthChallenge, scopes []string) (*Flow, error) {
	unlock, err := c.lockCredential(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	r, err := c.currentRecord()
	if err != nil {
		return nil, err
	}
	now, seen := c.manager.times()
	key := demand.cacheKey(scopes)
	r.dropExpiredPending(now, seen)
	c.mu.Lock()
	last := c.lastPrepared
	c.mu.Unlock()
	if last.challengeKey == key && now.Before(last.until) {
		i := slices.IndexFunc(r.Pending, func(p pendingSignIn) bool { return p.State == last.state })
		switch {
		case last.err != nil:
			return nil, last.err
		case i >= 0 && c.manager.callbacks.expects(last.state):
			return c.newFlow(r.Pending[i]), nil
		}
	}
	f, err := c.prepareSignIn(ctx, r, demand, scopes)
	_, later := errors.AsType[unavailableError](err)
	last = preparedSignIn{challengeKey: key, err: err, until: now.Add(notFoundPause)}
	switch {
	case ctx.Err() != nil:
		return f, err
	case err == nil:
		last.state, last.until = f.state, f.ended.started.Add(pendingTimeout)
	case later:
		last.until = now.Add(unavailablePause)
	}
	c.mu.Lock()
	c.lastPrepared = last
	c.mu.Unlock()
	return f, err
}

// cacheKey returns the key under which prepareSignInOnce caches its result. It consists of scopes and the parts of the
// challenge that determine where to sign in and which scopes to request.
func (d AuthChallenge) cacheKey(scopes []string) string {
	params := bearerParams(d.Challenges)
	return fmt.Sprintf("%d %q %q %q %v %+v %q", d.Status, params["resource_metadata"], params["scope"],
		d.AuthServerHint, asksForOAuth(d), endpointsInChallenge(d), scopes)
}
