package oauth

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
)

// A credentialRecord is all that is kept of one credential, under one name of the vault.
type credentialRecord struct {
	// ServerKey is the server's address, or what a stdio server is known by: a token is given to no other.
	ServerKey string `json:"for"`
	// AuthServer is where the tokens are from.
	AuthServer authServer `json:"site,omitzero"`
	// Client is who we are there, ClientAt the issuer that knows us: another issuer is never told of it.
	Client       clientIdentity `json:"client,omitzero"`
	ClientIssuer string         `json:"client_at,omitempty"`

	Access  string    `json:"access,omitempty"`
	Refresh string    `json:"refresh,omitempty"`
	Issued  time.Time `json:"issued,omitzero"`
	// Expires is zero where the server does not say: then the token is good until it is refused.
	Expires time.Time `json:"expires,omitzero"`
	Scopes  []string  `json:"scopes,omitempty"`
	// RenewalStarted is when a renewal was begun that has not ended: where its process was killed, the refresh token
	// may be spent.
	RenewalStarted time.Time `json:"renewing,omitzero"`
	// Pending are sign-ins that somebody may still come back from.
	Pending []pendingSignIn `json:"pending,omitempty"`
	// SignedOutReason says why nobody is signed in any more.
	SignedOutReason string `json:"trouble,omitempty"`
}

// A pendingSignIn sign-in waits for a person to come back with a code.
type pendingSignIn struct {
	State    string    `json:"state"`
	Verifier string    `json:"verifier"`
	Redirect string    `json:"redirect"`
	URL      string    `json:"url"`
	Scopes   []string  `json:"scopes,omitempty"`
	Created  time.Time `json:"made"`
	// Seen is the time by which expiry was judged when it was made; zero in records of earlier releases.
	Seen       time.Time      `json:"seen,omitzero"`
	AuthServer authServer     `json:"site"`
	Client     clientIdentity `json:"client"`
}

const (
	// pendingTimeout is how long one may take to come back, maxPending how many sign-ins of a credential may be open.
	pendingTimeout = time.Hour
	maxPending     = 4
)

// dropExpiredPending drops sign-ins that are too old to come back from: by now, or by seen, the time by which expiry is
// judged, which does not go back with the clock.
func (r *credentialRecord) dropExpiredPending(now, seen time.Time) {
	r.Pending = slices.DeleteFunc(r.Pending, func(p pendingSignIn) bool {
		if p.Seen.IsZero() {
			p.Seen = p.Created
		}
		return now.Sub(p.Created) > pendingTimeout || seen.Sub(p.Seen) > pendingTimeout
	})
	if over := len(r.Pending) - maxPending; over > 0 {
		r.Pending = slices.Delete(r.Pending, 0, over)
	}
}

// takePending gives the sign-in of a state and removes it: a state is good once.
func (r *credentialRecord) takePending(state string) (pendingSignIn, bool) {
	for i, p := range r.Pending {
		if p.State == state && state != "" {
			r.Pending = slices.Delete(r.Pending, i, i+1)
			return p, true
		}
	}
	return pendingSignIn{}, false
}

// hasPending says whether somebody may still come back under a state.
func (r *credentialRecord) hasPending(state string) bool {
	return slices.ContainsFunc(r.Pending, func(p pendingSignIn) bool { return p.State == state })
}

// rememberClient notes a client that was registered, for the next sign-in. While there are tokens the one that they
// were granted to stays: they are good with no other, and what one issuer knows it by is not for another.
func (r *credentialRecord) rememberClient(who clientIdentity, s authServer) {
	if who.Registered && r.Access == "" && r.Refresh == "" {
		r.Client, r.ClientIssuer = who, s.Issuer
	}
}

// renewalDueIn is how long the token is good for, before it should be renewed; positive for one whose end is unknown.
func (r *credentialRecord) renewalDueIn(now time.Time) time.Duration {
	if r.Expires.IsZero() {
		return time.Hour
	}
	margin := 5 * time.Minute
	if life := r.Expires.Sub(r.Issued); life > 0 {
		margin = min(margin, life/5)
	}
	return r.Expires.Sub(now) - margin
}

// dropTokens drops the tokens and keeps why.
func (r *credentialRecord) dropTokens(why string) {
	r.Access, r.Refresh, r.Scopes = "", "", nil
	r.Issued, r.Expires, r.RenewalStarted = time.Time{}, time.Time{}, time.Time{}
	r.SignedOutReason = why
}

// loadRecord gives what is kept, as of now: by whichever process. A record of another server is nobody's. It needs mu.
func (c *Credential) loadRecord() (credentialRecord, error) {
	stamp := c.vault.Stamp(c.name)
	if c.loaded && stamp == c.stamp {
		return c.hiddenRecord(), nil
	}
	data, err := c.vault.Get(c.name)
	fresh := credentialRecord{ServerKey: c.server.identityKey()}
	switch {
	case errors.Is(err, secrets.ErrNotFound):
		c.hiddenRecord, c.stamp, c.loaded = hideFromPrinters(fresh), stamp, true
		return fresh, nil
	case err != nil:
		return credentialRecord{}, fmt.Errorf("read the credential: %w", err)
	}
	var r credentialRecord
	if json.Unmarshal(data, &r) != nil {
		return credentialRecord{}, fmt.Errorf("read the credential %s: it is damaged; sign out and in again", c.name)
	}
	if r.ServerKey != fresh.ServerKey {
		return credentialRecord{}, fmt.Errorf("the credential %s is that of another server, %s", c.name,
			hostOf(r.ServerKey))
	}
	c.hiddenRecord, c.stamp, c.loaded = hideFromPrinters(r), stamp, true
	return c.hiddenRecord(), nil
}

// An vaultError is a vault that does not take what is to be kept.
type vaultError struct{ err error }

func (u vaultError) Error() string { return "keep the credential: " + u.err.Error() }
func (u vaultError) Unwrap() error { return u.err }

// saveRecord keeps a record: for this process at least. It needs mu, and the vault's lock where others may do the same.
func (c *Credential) saveRecord(r credentialRecord) error {
	data, err := json.Marshal(r)
	if err != nil {
		return vaultError{err}
	}
	if err := c.vault.Put(c.name, data); err != nil {
		if c.loaded { // a full disk loses nothing while we live
			c.hiddenRecord = hideFromPrinters(r)
		}
		return vaultError{err}
	}
	c.hiddenRecord, c.stamp, c.loaded = hideFromPrinters(r), c.vault.Stamp(c.name), true
	close(c.changed)
	c.changed = make(chan struct{})
	return nil
}

// hideFromPrinters keeps a record where no printer finds it, however it comes upon what holds it.
func hideFromPrinters(r credentialRecord) func() credentialRecord {
	r = r.clone()
	return func() credentialRecord { return r.clone() }
}

func (r credentialRecord) clone() credentialRecord {
	r.Scopes, r.Pending = slices.Clone(r.Scopes), slices.Clone(r.Pending)
	return r
}

// hostOf is what of an address may be told.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "unknown"
	}
	return u.Scheme + "://" + u.Host
}
