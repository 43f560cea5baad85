package signin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge/bridge/egress"
)

// begin begins a sign-in that comes back by way of a browser on this machine, or is brought back by hand. One that is still
// open is taken up again, where it is the same.
func (c *Credential) begin(ctx context.Context) (*Flow, error) {
	r, demand, unlock, err := c.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	f, err := c.beginFor(ctx, r, demand, c.rightsBeyond(r))
	if err == nil {
		c.mu.Lock()
		c.found = found{} // calls that heard that there is no way hear of this one
		c.mu.Unlock()
	}
	return f, err
}

// enter begins what a person wants done: it takes the lock, and gives what is kept and what the server wants.
func (c *Credential) enter(ctx context.Context) (r record, demand Demand, unlock func(), err error) {
	if unlock, err = c.lock(ctx); err != nil {
		return record{}, Demand{}, nil, err
	}
	if r, err = c.current(); err == nil {
		demand, err = c.asking(ctx)
	}
	if err != nil {
		unlock()
		return record{}, Demand{}, nil, err
	}
	return r, demand, unlock, nil
}

// rightsBeyond gives what was granted with what the server wanted beyond it; nil where it wanted nothing more.
func (c *Credential) rightsBeyond(r record) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.lacking) == 0 {
		return nil
	}
	return union(r.Scopes, c.lacking)
}

// beginFor prepares a sign-in; scopes are the rights to ask for, nil those that the server names. It needs the lock.
func (c *Credential) beginFor(ctx context.Context, r record, demand Demand, scopes []string) (*Flow, error) {
	redirects, err := c.wayBack(r)
	if err != nil {
		return nil, err
	}
	s := r.Site // who grants more is who granted something
	if len(scopes) == 0 || s.Authorization == "" {
		if s, err = c.discover(ctx, demand); err != nil {
			return nil, err
		}
	}
	if s.Authorization == "" {
		return nil, errors.New("the authorization server names no authorization endpoint")
	}
	scopes = c.scopesFor(s, demand, scopes)
	r.prune(c.desk.o.Now())
	c.endPruned(r)
	for _, p := range r.Pending {
		if redirects[0] == p.Redirect && slices.Equal(p.Scopes, scopes) && p.Site.Issuer == s.Issuer && c.desk.lobby.expects(p.State) {
			return c.flow(p), nil
		}
	}
	who, err := c.identify(ctx, s, r, redirects)
	if err != nil {
		return nil, err
	}
	p := c.prepare(s, who, scopes, redirects)
	if err := egress.Check(p.URL); err != nil {
		return nil, fmt.Errorf("the address to sign in at %w", err)
	}
	r.know(who, s)
	r.Pending = append(r.Pending, p)
	r.prune(c.desk.o.Now())
	c.endPruned(r)
	if err := c.keep(r); err != nil {
		return nil, err
	}
	return c.flow(p), nil
}

// endPruned has those hear of it who wait for a sign-in that nobody comes back from any more: its time is over, others took its
// place, or another process has ended it.
func (c *Credential) endPruned(r record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for state, end := range c.endings {
		if r.awaits(state) {
			continue
		}
		if r.Access == "" || r.Issued.Before(end.made) {
			end.err = context.DeadlineExceeded
		}
		close(end.done)
		delete(c.endings, state)
		c.desk.lobby.forget(state)
	}
}

// A found is what came of the last attempt to prepare a sign-in for a demand: an address, or why there is none. Calls that
// are refused alike hear of it, and nobody is asked again.
type found struct {
	demand string
	state  string
	err    error
	until  time.Time
}

const (
	// awayFor is how long an authorization server that is away is left alone, nowhereFor how long one is not looked for where
	// there was none.
	awayFor, nowhereFor = 5 * time.Second, 5 * time.Minute
)

// beginOnce is beginFor for calls, of which many may hear the same.
func (c *Credential) beginOnce(ctx context.Context, demand Demand, scopes []string) (*Flow, error) {
	unlock, err := c.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	r, err := c.current()
	if err != nil {
		return nil, err
	}
	now, key := c.desk.o.Now(), demand.key(scopes)
	r.prune(now)
	c.mu.Lock()
	last := c.found
	c.mu.Unlock()
	if last.demand == key && now.Before(last.until) {
		i := slices.IndexFunc(r.Pending, func(p pending) bool { return p.State == last.state })
		switch {
		case last.err != nil:
			return nil, last.err
		case i >= 0 && c.desk.lobby.expects(last.state):
			return c.flow(r.Pending[i]), nil
		}
	}
	f, err := c.beginFor(ctx, r, demand, scopes)
	_, later := errors.AsType[awayError](err)
	last = found{demand: key, err: err, until: now.Add(nowhereFor)}
	switch {
	case ctx.Err() != nil:
		return f, err
	case err == nil:
		last.state, last.until = f.state, f.end.made.Add(pendingTime)
	case later:
		last.until = now.Add(awayFor)
	}
	c.mu.Lock()
	c.found = last
	c.mu.Unlock()
	return f, err
}

// key is what of a demand decides where to sign in, and for what.
func (d Demand) key(scopes []string) string {
	params := bearer(d.Challenges)
	return fmt.Sprintf("%d %q %q %q %v %+v %q", d.Status, params["resource_metadata"], params["scope"], d.Hint, asksForOAuth(d), named(d), scopes)
}
