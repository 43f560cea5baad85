package signin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// demandIn reads a refusal.
func demandIn(status int, header http.Header, body []byte) Demand {
	return Demand{
		Status: status, Challenges: header.Values("Www-Authenticate"), Hint: header.Get("Mcp-Auth-Server"), Body: body[:min(len(body), maxRefusal)],
	}
}

// maxRefusal is how much of the body of a refusal is looked at.
const maxRefusal = 16 << 10

// renew sees to it that there is another token than the one used. One of all that want it does the work, in whichever
// process; the others find what it got. What is begun goes on when its caller leaves: the old refresh token may be spent by
// then. The error is a *NeededError where only a person can help, and a laterError where it may go well another time.
func (c *Credential) renew(ctx context.Context, used string, refused bool) error {
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	r, err := c.current()
	now := c.desk.o.Now()
	switch {
	case err != nil:
	case r.Access != "" && r.Access != used:
	case !refused && r.Access != "" && r.freshFor(now) > 0:
	case !c.unaided() && r.Refresh == "":
		err = c.over(r, c.whyOver(r, now))
	case refused && c.inVain(now):
		err = errRefusesAll
		if !c.unaided() {
			err = c.over(r, err)
		}
	default:
		err = c.haltedAt(now)
		if err == nil {
			return c.desk.carryOn(ctx, func(ctx context.Context) error {
				defer unlock()
				err := c.renewNow(ctx, r)
				if err == nil && refused {
					c.countRenewal(now)
				}
				return err
			})
		}
	}
	unlock()
	if errors.Is(err, errRefusesAll) && Needed(err) == nil {
		err = &NeededError{Server: c.site.ID, Err: err, used: markOf(r.Access)}
	}
	return err
}

// errRefusesAll says that renewing is of no use: what is got is refused.
var errRefusesAll = errors.New("the server refuses each token that it is given: see whether its row's \"auth\" asks for the right resource and scopes, or sign in as somebody else")

// whyOver says why a token that cannot be renewed is not taken any more, where that is not for its age.
func (c *Credential) whyOver(r record, now time.Time) error {
	if r.Access != "" && now.Sub(r.Issued) < time.Minute && (r.Expires.IsZero() || now.Before(r.Expires)) {
		return errRefusesAll
	}
	return nil
}

// mostRenewals is how often within a minute a token that was refused is renewed: a server that takes none refuses for ever.
const mostRenewals = 3

// inVain says whether refusals have brought about too many renewals.
func (c *Credential) inVain(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renewals = slices.DeleteFunc(c.renewals, func(t time.Time) bool { return now.Sub(t).Abs() > time.Minute })
	return len(c.renewals) >= mostRenewals
}

func (c *Credential) countRenewal(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renewals = append(c.renewals, now)
}

// A halt is a renewal that went wrong for now: until its end those who want one hear of it, and nobody is asked.
type halt struct {
	err   error
	until time.Time
}

func (c *Credential) haltedAt(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.halted.err != nil && now.Before(c.halted.until) {
		return c.halted.err
	}
	return nil
}

// halt has the next renewal wait: long where the token is good meanwhile.
func (c *Credential) halt(r record, err error) error {
	const short, long = 2 * time.Second, 30 * time.Second
	now, pause := c.desk.o.Now(), short
	if now.Before(r.Expires) {
		pause = long
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.halted = halt{laterError{stepRenew, err}, now.Add(pause)}
	c.log.Warn("a sign-in was not renewed", "error", err)
	return c.halted.err
}

// renewNow asks for another token. It needs the lock.
func (c *Credential) renewNow(ctx context.Context, r record) error {
	switch {
	case c.site.Vouched:
		return c.byExchange(ctx, r)
	case c.site.Grant != Code:
		return c.unattended(ctx, r)
	}
	if now, err := c.who(ctx); err == nil && now.ID != "" && now.ID == r.Client.ID {
		r.Client.Secret = now.Secret // the row knows of a change
	}
	cut := !r.Renewing.IsZero()
	r.Renewing = c.desk.o.Now()
	if err := c.keep(r); err != nil {
		return err
	}
	t, err := c.grant(ctx, r.Site, r.Client, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {r.Refresh}})
	if err == nil {
		err = c.takeIn(r, r.Site, r.Client, t, r.Scopes)
	}
	if _, unkept := errors.AsType[unkeptError](err); unkept {
		c.log.Error("a renewed sign-in could not be kept: it is lost when this process ends", "error", err)
		return nil
	}
	refused, said := errors.AsType[*refusal](err)
	_, unfit := errors.AsType[kindError](err)
	_, notAsked := errors.AsType[unasked](err)
	switch {
	case err == nil:
		return nil
	case said && refused.final():
		if refused.code == "invalid_client" || refused.code == "unauthorized_client" {
			r.Client, r.ClientAt = client{}, "" // it is registered anew
		}
		why := saying("MCP OAuth refresh failed: %d %w", refused.status, refused)
		if cut {
			why = fmt.Errorf("an earlier renewal of the sign-in was cut off, and what it got is lost: %w", refused)
		}
		return c.over(r, why)
	case unfit:
		return c.over(r, err)
	case !cut && (notAsked || said && refused.code != ""):
		r.Renewing = time.Time{} // the old token is surely not spent
		if err := c.keep(r); err != nil {
			return err
		}
	}
	return c.halt(r, err)
}

// over keeps that nobody is signed in any more, and says so.
func (c *Credential) over(r record, why error) error {
	needed := &NeededError{Server: c.site.ID, Err: why, used: markOf("")}
	if r.Access == "" && r.Refresh == "" {
		if needed.Err = why; r.Trouble != "" {
			needed.Err = errors.New(r.Trouble)
		}
		return needed
	}
	if why == nil {
		why = errors.New("the sign-in has expired")
	}
	r.forget(why.Error())
	if err := c.keep(r); err != nil {
		return err
	}
	needed.Err = errors.New(r.Trouble)
	return needed
}
