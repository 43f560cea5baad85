package signin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge/secrets"
)

// A record is all that is kept of one credential, under one name of the vault.
type record struct {
	// For is the server's address, or what a stdio server is known by: a token is given to no other.
	For string `json:"for"`
	// Site is where the tokens are from.
	Site site `json:"site,omitzero"`
	// Client is who we are there, ClientAt the issuer that knows us: another issuer is never told of it.
	Client   client `json:"client,omitzero"`
	ClientAt string `json:"client_at,omitempty"`

	Access  string    `json:"access,omitempty"`
	Refresh string    `json:"refresh,omitempty"`
	Issued  time.Time `json:"issued,omitzero"`
	// Expires is zero where the server does not say: then the token is good until it is refused.
	Expires time.Time `json:"expires,omitzero"`
	Scopes  []string  `json:"scopes,omitempty"`
	// Renewing is when a renewal was begun that has not ended: where its process was killed, the refresh token may be spent.
	Renewing time.Time `json:"renewing,omitzero"`
	// Pending are sign-ins that somebody may still come back from.
	Pending []pending `json:"pending,omitempty"`
	// Trouble says why nobody is signed in any more.
	Trouble string `json:"trouble,omitempty"`
}

// A pending sign-in waits for a person to come back with a code.
type pending struct {
	State    string    `json:"state"`
	Verifier string    `json:"verifier"`
	Redirect string    `json:"redirect"`
	URL      string    `json:"url"`
	Scopes   []string  `json:"scopes,omitempty"`
	Made     time.Time `json:"made"`
	Site     site      `json:"site"`
	Client   client    `json:"client"`
}

const (
	// pendingTime is how long one may take to come back, maxPending how many sign-ins of a credential may be open.
	pendingTime = time.Hour
	maxPending  = 4
)

// prune drops sign-ins that nobody comes back from any more.
func (r *record) prune(now time.Time) {
	r.Pending = slices.DeleteFunc(r.Pending, func(p pending) bool { return now.Sub(p.Made) > pendingTime })
	if over := len(r.Pending) - maxPending; over > 0 {
		r.Pending = slices.Delete(r.Pending, 0, over)
	}
}

// take gives the sign-in of a state and removes it: a state is good once.
func (r *record) take(state string) (pending, bool) {
	for i, p := range r.Pending {
		if p.State == state && state != "" {
			r.Pending = slices.Delete(r.Pending, i, i+1)
			return p, true
		}
	}
	return pending{}, false
}

// awaits says whether somebody may still come back under a state.
func (r *record) awaits(state string) bool {
	return slices.ContainsFunc(r.Pending, func(p pending) bool { return p.State == state })
}

// know notes a client that was registered, for the next sign-in. While there are tokens the one that they were granted to stays:
// they are good with no other, and what one issuer knows it by is not for another.
func (r *record) know(who client, s site) {
	if who.Registered && r.Access == "" && r.Refresh == "" {
		r.Client, r.ClientAt = who, s.Issuer
	}
}

// freshFor is how long the token is good for, before it should be renewed; positive for one whose end is unknown.
func (r *record) freshFor(now time.Time) time.Duration {
	if r.Expires.IsZero() {
		return time.Hour
	}
	margin := 5 * time.Minute
	if life := r.Expires.Sub(r.Issued); life > 0 {
		margin = min(margin, life/5)
	}
	return r.Expires.Sub(now) - margin
}

// forget drops the tokens and keeps why.
func (r *record) forget(why string) {
	r.Access, r.Refresh, r.Scopes = "", "", nil
	r.Issued, r.Expires, r.Renewing = time.Time{}, time.Time{}, time.Time{}
	r.Trouble = why
}

// load gives what is kept, as of now: by whichever process. A record of another server is nobody's. It needs mu.
func (c *Credential) load() (record, error) {
	stamp := c.vault.Stamp(c.name)
	if c.known && stamp == c.stamp {
		return c.kept(), nil
	}
	data, err := c.vault.Get(c.name)
	fresh := record{For: c.site.key()}
	switch {
	case errors.Is(err, secrets.ErrNone):
		c.kept, c.stamp, c.known = hold(fresh), stamp, true
		return fresh, nil
	case err != nil:
		return record{}, fmt.Errorf("read the credential: %w", err)
	}
	var r record
	if json.Unmarshal(data, &r) != nil {
		return record{}, fmt.Errorf("read the credential %s: it is damaged; sign out and in again", c.name)
	}
	if r.For != fresh.For {
		return record{}, fmt.Errorf("the credential %s is that of another server, %s", c.name, hostOf(r.For))
	}
	c.kept, c.stamp, c.known = hold(r), stamp, true
	return c.kept(), nil
}

// An unkeptError is a vault that does not take what is to be kept.
type unkeptError struct{ err error }

func (u unkeptError) Error() string { return "keep the credential: " + u.err.Error() }
func (u unkeptError) Unwrap() error { return u.err }

// save keeps a record: for this process at least. It needs mu, and the vault's lock where others may do the same.
func (c *Credential) save(r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return unkeptError{err}
	}
	if err := c.vault.Put(c.name, data); err != nil {
		if c.known { // a full disk loses nothing while we live
			c.kept = hold(r)
		}
		return unkeptError{err}
	}
	c.kept, c.stamp, c.known = hold(r), c.vault.Stamp(c.name), true
	close(c.changed)
	c.changed = make(chan struct{})
	return nil
}

// hold keeps a record where no printer finds it, however it comes upon what holds it.
func hold(r record) func() record {
	r = r.clone()
	return func() record { return r.clone() }
}

func (r record) clone() record {
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
