package signin

import (
	"context"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// State says how the credential stands, without asking anybody.
func (c *Credential) State() (drawbridge.Credential, error) {
	s := drawbridge.Credential{Server: c.site.ID, Name: c.name}
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

// Signed says whether there is a token now, good or not.
func (c *Credential) Signed() bool {
	r, err := c.current()
	return err == nil && r.Access != ""
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
