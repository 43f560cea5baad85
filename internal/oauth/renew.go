package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/safehttp"
)

// parseChallenge returns the challenge in a response of the server.
func parseChallenge(status int, header http.Header, body []byte) AuthChallenge {
	return AuthChallenge{
		Status: status, Challenges: header.Values("Www-Authenticate"), AuthServerHint: header.Get("Mcp-Auth-Server"),
		Body: body[:min(len(body), maxChallengeBody)],
	}
}

// maxChallengeBody is the maximum size of AuthChallenge.Body, in bytes.
const maxChallengeBody = 16 << 10

// renewToken obtains and stores a token that differs from the token used. refused is true if the server refused the
// token used. If several goroutines and processes need a new token, only one requests it, and the others read the
// stored result. The request continues after ctx ends, because it may already have made the old refresh token invalid.
// The error is a *SignInRequiredError if a person must sign in, and a temporaryError if a retry may succeed.
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

// errEveryTokenRefused is the error if the server refuses even new tokens, so that a renewal does not help.
var errEveryTokenRefused = errors.New(
	"the server refuses each token that it is given: check that its row's \"auth\" has the right resource and scopes, or sign in with another account")

// lostAccessReason returns errEveryTokenRefused if the server refused a token that is less than a minute old, has not
// expired and cannot be renewed. Otherwise it returns nil: the token may have expired, so a new sign-in may help.
func (c *Credential) lostAccessReason(r credentialRecord, now time.Time) error {
	if r.Access != "" && now.Sub(r.Issued) < time.Minute && (r.Expires.IsZero() || now.Before(r.Expires)) {
		return errEveryTokenRefused
	}
	return nil
}

// maxRenewals is the maximum number of renewals of refused tokens within a minute. Without the limit, a server that
// refuses every token would cause an endless loop.
const maxRenewals = 3

// hasTooManyRenewals reports whether maxRenewals refused tokens were renewed within the last minute.
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

// A renewalPause contains the error of a renewal that failed for a temporary reason. Before the time until, renewals
// return this error without sending a request.
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

// pauseRenewal returns err as a temporaryError, and starts a renewalPause. The pause is longer if the token is still
// valid.
func (c *Credential) pauseRenewal(r credentialRecord, err error) error {
	const short, long = 2 * time.Second, 30 * time.Second
	now, pause := c.manager.o.Now(), short
	if now.Before(r.Expires) {
		pause = long
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pause = renewalPause{temporaryError{stepRenew, err}, now.Add(pause)}
	c.log.Warn("the sign-in was not renewed", "error", err)
	return c.pause.err
}

// refreshToken requests and stores a new token, with the grant type that the server's configuration requires. The
// caller holds the lock of lockCredential.
func (c *Credential) refreshToken(ctx context.Context, r credentialRecord) error {
	switch {
	case c.server.ExchangesCallerToken:
		return c.exchangeCallerToken(ctx, r)
	case c.server.Grant != CodeGrant:
		return c.signInUnattended(ctx, r)
	}
	if c.server.Borrowed && c.manager.o.Client == nil {
		// the client for the server that the credential belongs to
		c.client = safehttp.NewClient(r.ServerKey, r.AuthServer.Issuer, r.AuthServer.Token)
	}
	if now, err := c.configuredClient(ctx); err == nil && now.ID != "" && now.ID == r.Client.ID {
		r.Client.Secret = now.Secret // the configuration may contain a newer secret
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
		c.log.Error("the renewed sign-in could not be stored: it is lost when this process ends", "error", err)
		return nil
	}
	refusal, refused := errors.AsType[*oauthError](err)
	_, unfit := errors.AsType[tokenTypeError](err)
	_, notAsked := errors.AsType[notSentError](err)
	switch {
	case err == nil:
		return nil
	case refused && refusal.isPermanent():
		if refusal.code == "invalid_client" || refusal.code == "unauthorized_client" {
			r.Client, r.ClientIssuer = clientIdentity{}, "" // the next sign-in registers again
		}
		why := userErrorf("MCP OAuth refresh failed: %d %w", refusal.status, refusal)
		if cut {
			why = fmt.Errorf("an earlier renewal of the sign-in was interrupted, and its token is lost: %w", refusal)
		}
		return c.endSignIn(r, why)
	case unfit:
		return c.endSignIn(r, err)
	case !cut && (notAsked || refused && refusal.code != ""):
		r.RenewalStarted = time.Time{} // the refresh token is still valid
		if err := c.lockAndSave(r); err != nil {
			return err
		}
	}
	return c.pauseRenewal(r, err)
}

// endSignIn deletes the stored tokens, stores why as the reason, and returns a *SignInRequiredError. A nil why means
// that the sign-in has expired.
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
