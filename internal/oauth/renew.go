package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// parseChallenge reads a refusal.
func parseChallenge(status int, header http.Header, body []byte) AuthChallenge {
	return AuthChallenge{
		Status: status, Challenges: header.Values("Www-Authenticate"), AuthServerHint: header.Get("Mcp-Auth-Server"),
		Body: body[:min(len(body), maxChallengeBody)],
	}
}

// maxChallengeBody is how much of the body of a refusal is looked at.
const maxChallengeBody = 16 << 10

// renewToken sees to it that there is another token than the one used. One of all that want it does the work, in
// whichever process; the others find what it got. What is begun goes on when its caller leaves: the old refresh token
// may be spent by then. The error is a *SignInRequiredError where only a person can help, and a temporaryError where
// it may go well another time.
func (c *Credential) renewToken(ctx context.Context, used string, refused bool) error {
	unlock, err := c.lockCredential(ctx)
	if err != nil {
		return err
	}
	r, err := c.currentRecord()
	now := c.manager.o.Now()
	switch {
	case err != nil:
	case r.Access != "" && r.Access != used:
	case !refused && r.Access != "" && r.renewalDueIn(now) > 0:
	case !c.isUnattended() && r.Refresh == "":
		err = c.endSignIn(r, c.lostAccessReason(r, now))
	case refused && c.hasTooManyRenewals(now):
		err = errEveryTokenRefused
		if !c.isUnattended() {
			err = c.endSignIn(r, err)
		}
	default:
		err = c.renewalPausedError(now)
		if err == nil {
			return c.manager.runDetached(ctx, func(ctx context.Context) error {
				defer unlock()
				err := c.refreshToken(ctx, r)
				if err == nil && refused {
					c.countRenewal(now)
				}
				return err
			})
		}
	}
	unlock()
	if errors.Is(err, errEveryTokenRefused) && SignInRequired(err) == nil {
		err = &SignInRequiredError{Server: c.server.ID, Err: err, usedToken: hashToken(r.Access)}
	}
	return err
}

// errEveryTokenRefused says that renewing is of no use: what is got is refused.
var errEveryTokenRefused = errors.New(
	"the server refuses each token that it is given: see whether its row's \"auth\" asks for the right resource and scopes, or sign in as somebody else")

// lostAccessReason says why a token that cannot be renewed is not taken any more, where that is not for its age.
func (c *Credential) lostAccessReason(r credentialRecord, now time.Time) error {
	if r.Access != "" && now.Sub(r.Issued) < time.Minute && (r.Expires.IsZero() || now.Before(r.Expires)) {
		return errEveryTokenRefused
	}
	return nil
}

// maxRenewals is how often within a minute a token that was refused is renewed: a server that takes none refuses for
// ever.
const maxRenewals = 3

// hasTooManyRenewals says whether refusals have brought about too many renewals.
func (c *Credential) hasTooManyRenewals(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recentRenewals = slices.DeleteFunc(c.recentRenewals,
		func(t time.Time) bool { return now.Sub(t).Abs() > time.Minute })
	return len(c.recentRenewals) >= maxRenewals
}

func (c *Credential) countRenewal(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recentRenewals = append(c.recentRenewals, now)
}

// A renewalPause is a renewal that went wrong for now: until its end those who want one hear of it, and nobody is
// asked.
type renewalPause struct {
	err   error
	until time.Time
}

func (c *Credential) renewalPausedError(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pause.err != nil && now.Before(c.pause.until) {
		return c.pause.err
	}
	return nil
}

// pauseRenewal has the next renewal wait: long where the token is good meanwhile.
func (c *Credential) pauseRenewal(r credentialRecord, err error) error {
	const short, long = 2 * time.Second, 30 * time.Second
	now, pause := c.manager.o.Now(), short
	if now.Before(r.Expires) {
		pause = long
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pause = renewalPause{temporaryError{stepRenew, err}, now.Add(pause)}
	c.log.Warn("a sign-in was not renewed", "error", err)
	return c.pause.err
}

// refreshToken asks for another token. It needs the lock.
func (c *Credential) refreshToken(ctx context.Context, r credentialRecord) error {
	switch {
	case c.server.ExchangesCallerToken:
		return c.exchangeCallerToken(ctx, r)
	case c.server.Grant != CodeGrant:
		return c.signInUnattended(ctx, r)
	}
	if now, err := c.configuredClient(ctx); err == nil && now.ID != "" && now.ID == r.Client.ID {
		r.Client.Secret = now.Secret // the row knows of a change
	}
	cut := !r.RenewalStarted.IsZero()
	r.RenewalStarted = c.manager.o.Now()
	if err := c.lockAndSave(r); err != nil {
		return err
	}
	t, err := c.requestToken(ctx, r.AuthServer, r.Client, url.Values{"grant_type": {"refresh_token"},
		"refresh_token": {r.Refresh}})
	if err == nil {
		err = c.storeToken(r, r.AuthServer, r.Client, t, r.Scopes)
	}
	if _, unkept := errors.AsType[vaultError](err); unkept {
		c.log.Error("a renewed sign-in could not be kept: it is lost when this process ends", "error", err)
		return nil
	}
	refused, said := errors.AsType[*oauthError](err)
	_, unfit := errors.AsType[tokenTypeError](err)
	_, notAsked := errors.AsType[notSentError](err)
	switch {
	case err == nil:
		return nil
	case said && refused.isPermanent():
		if refused.code == "invalid_client" || refused.code == "unauthorized_client" {
			r.Client, r.ClientIssuer = clientIdentity{}, "" // it is registered anew
		}
		why := userErrorf("MCP OAuth refresh failed: %d %w", refused.status, refused)
		if cut {
			why = fmt.Errorf("an earlier renewal of the sign-in was cut off, and what it got is lost: %w", refused)
		}
		return c.endSignIn(r, why)
	case unfit:
		return c.endSignIn(r, err)
	case !cut && (notAsked || said && refused.code != ""):
		r.RenewalStarted = time.Time{} // the old token is surely not spent
		if err := c.lockAndSave(r); err != nil {
			return err
		}
	}
	return c.pauseRenewal(r, err)
}

// endSignIn keeps that nobody is signed in any more, and says so.
func (c *Credential) endSignIn(r credentialRecord, why error) error {
	needed := &SignInRequiredError{Server: c.server.ID, Err: why, usedToken: hashToken("")}
	if r.Access == "" && r.Refresh == "" {
		if needed.Err = why; r.SignedOutReason != "" {
			needed.Err = errors.New(r.SignedOutReason)
		}
		return needed
	}
	if why == nil {
		why = errors.New("the sign-in has expired")
	}
	r.dropTokens(why.Error())
	if err := c.lockAndSave(r); err != nil {
		return err
	}
	needed.Err = errors.New(r.SignedOutReason)
	return needed
}
