package oauth

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
)

// A credentialRecord is the stored state of one credential, under one name of the vault.
type credentialRecord struct {
	// ServerKey identifies the server to which the token may be sent (see Server.identityKey).
	ServerKey string `json:"for"`
	// AuthServer is the authorization server that issued the tokens.
	AuthServer authServer `json:"site,omitzero"`
	// Client is the client that Drawbridge uses at AuthServer. ClientIssuer is the issuer that knows Client; Client is
	// not sent to another issuer.
	Client       clientIdentity `json:"client,omitzero"`
	ClientIssuer string         `json:"client_at,omitempty"`

	Access  string    `json:"access,omitempty"`
	Refresh string    `json:"refresh,omitempty"`
	Issued  time.Time `json:"issued,omitzero"`
	// Expires is zero if the authorization server does not name a time. The token is then used until a server refuses
	// it.
	Expires time.Time `json:"expires,omitzero"`
	Scopes  []string  `json:"scopes,omitempty"`
	// RenewalStarted is the time at which an unfinished renewal began. If the process was killed during the renewal,
	// the refresh token may be invalid already.
	RenewalStarted time.Time `json:"renewing,omitzero"`
	// Pending are the sign-ins that can still be completed.
	Pending []pendingSignIn `json:"pending,omitempty"`
	// AcceptedEndpoints are the pairs of origins that the owner has accepted.
	AcceptedEndpoints []drawbridge.SignInEndpoints `json:"accepted,omitempty"`
	// SignedOutReason is the reason why the last sign-in ended; it is empty while a sign-in is valid.
	SignedOutReason string `json:"trouble,omitempty"`
}

// A pendingSignIn is a sign-in that waits for the person's authorization code.
type pendingSignIn struct {
	State    string    `json:"state"`
	Verifier string    `json:"verifier"`
	Redirect string    `json:"redirect"`
	URL      string    `json:"url"`
	Scopes   []string  `json:"scopes,omitempty"`
	Created  time.Time `json:"made"`
	// Seen is the ExpiryTime of the manager when the sign-in began; zero in records of earlier releases.
	Seen       time.Time      `json:"seen,omitzero"`
	AuthServer authServer     `json:"site"`
	Client     clientIdentity `json:"client"`
}

const (
	// pendingTimeout is how long a sign-in can be completed. maxPending is the maximum number of pending sign-ins of a
	// credential.
	pendingTimeout = time.Hour
	maxPending     = 4
)

// dropExpiredPending removes expired sign-ins, and the oldest ones above maxPending. A sign-in expires after
// pendingTimeout, measured by the clock (now) or by seen. seen is a time that does not go back when the clock is set
// back.
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

// takePending removes the pending sign-in with the given state and returns it. A state can thus be used only once.
func (r *credentialRecord) takePending(state string) (pendingSignIn, bool) {
	for i, p := range r.Pending {
		if p.State == state && state != "" {
			r.Pending = slices.Delete(r.Pending, i, i+1)
			return p, true
		}
	}
	return pendingSignIn{}, false
}

// hasPending reports whether a sign-in with the given state is pending.
func (r *credentialRecord) hasPending(state string) bool {
	return slices.ContainsFunc(r.Pending, func(p pendingSignIn) bool { return p.State == state })
}

// rememberClient stores a registered client in r for the next sign-in, together with its issuer. It does nothing while
// r has tokens, since tokens are valid only with the client that they were issued to.
func (r *credentialRecord) rememberClient(who clientIdentity, s authServer) {
	if who.Registered && r.Access == "" && r.Refresh == "" {
		r.Client, r.ClientIssuer = who, s.Issuer
	}
}

// renewalDueIn returns the time until the token should be renewed; 0 or less means now. If the expiry is unknown, the
// result is positive.
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

// dropTokens deletes the tokens and sets SignedOutReason to the text why.
func (r *credentialRecord) dropTokens(why string) {
	r.Access, r.Refresh, r.Scopes = "", "", nil
	r.Issued, r.Expires, r.RenewalStarted = time.Time{}, time.Time{}, time.Time{}
	r.SignedOutReason = why
}

// loadRecord returns the current record, including changes of other processes. If the record belongs to another server,
// it returns an error, unless Server.Borrowed is true. The caller holds mu.
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
	if r.ServerKey != fresh.ServerKey && !c.server.Borrowed {
		return credentialRecord{}, fmt.Errorf("the credential %s belongs to another server, %s", c.name,
			hostOf(r.ServerKey))
	}
	c.hiddenRecord, c.stamp, c.loaded = hideFromPrinters(r), stamp, true
	return c.hiddenRecord(), nil
}

// A vaultError is a failure to store the credential.
type vaultError struct{ err error }

func (u vaultError) Error() string { return "keep the credential: " + u.err.Error() }
func (u vaultError) Unwrap() error { return u.err }

// saveRecord stores a record in the vault. If that fails, this process still uses the new record. The caller holds mu,
// and the lock of the vault if other processes may write.
func (c *Credential) saveRecord(r credentialRecord) error {
	data, err := json.Marshal(r)
	if err != nil {
		return vaultError{err}
	}
	if err := c.vault.Put(c.name, data); err != nil {
		if c.loaded { // if the disk is full, the record is valid until the process ends
			c.hiddenRecord = hideFromPrinters(r)
		}
		return vaultError{err}
	}
	c.hiddenRecord, c.stamp, c.loaded = hideFromPrinters(r), c.vault.Stamp(c.name), true
	close(c.changed)
	c.changed = make(chan struct{})
	return nil
}

// hideFromPrinters returns a function that returns a copy of the record. A struct that contains the function instead of
// the record shows no secret when it is printed.
func hideFromPrinters(r credentialRecord) func() credentialRecord {
	r = r.clone()
	return func() credentialRecord { return r.clone() }
}

func (r credentialRecord) clone() credentialRecord {
	r.Scopes, r.Pending = slices.Clone(r.Scopes), slices.Clone(r.Pending)
	r.AcceptedEndpoints = slices.Clone(r.AcceptedEndpoints)
	return r
}

// hostOf returns the part of an address that may be shown: scheme and host.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "unknown"
	}
	return u.Scheme + "://" + u.Host
}
