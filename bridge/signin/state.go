package signin

import (
	"context"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// A State is how a credential stands, for people. There is no secret in it.
type State struct {
	Server drawbridge.ServerID `json:"server"`
	// Name is what the credential is kept under.
	Name string `json:"name"`
	// Signed says that there is a token; Expires is when it ends, zero where nobody knows; Renews that it renews itself.
	Signed  bool      `json:"signed_in"`
	Expires time.Time `json:"expires,omitzero"`
	Renews  bool      `json:"renews,omitempty"`
	Issuer  string    `json:"issuer,omitempty"`
	Scopes  []string  `json:"scopes,omitempty"`
	// URL is where a sign-in that was begun goes on; empty where none was.
	URL string `json:"url,omitempty"`
	// Trouble says why nobody is signed in any more.
	Trouble string `json:"trouble,omitempty"`
}

// State says how the credential stands, without asking anybody.
func (c *Credential) State() (State, error) {
	s := State{Server: c.site.ID, Name: c.name}
	r, err := c.current()
	if err != nil {
		return s, err
	}
	r.prune(c.desk.o.Now())
	s.Signed, s.Expires, s.Renews = r.Access != "", r.Expires, r.Refresh != ""
	s.Scopes, s.Trouble = r.Scopes, r.Trouble
	if r.Site.Issuer != "" {
		s.Issuer = hostOf(r.Site.Issuer)
	}
	if n := len(r.Pending); n > 0 {
		s.URL = r.Pending[n-1].URL
	}
	return s, nil
}

// lookAgain is how often the vault is looked at for what other processes did.
const lookAgain = time.Second

// Changed waits until what is kept is another than the token used: because somebody signed in here, or in another process.
// The error is the context's.
func (c *Credential) Changed(ctx context.Context, used string) error {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		c.mu.Lock()
		changed := c.changed
		r, err := c.load()
		c.mu.Unlock()
		if err == nil && r.Access != "" && r.Access != used {
			return nil
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
