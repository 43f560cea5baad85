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
	s.Signed, s.Expires, s.Renews = r.Access != "", r.Expires, r.Refresh != "" || c.unaided()
	s.Scopes, s.Trouble = r.Scopes, r.Trouble
	if r.Site.Issuer != "" {
		s.Issuer = hostOf(r.Site.Issuer)
	}
	if n := len(r.Pending); n > 0 {
		s.URL = r.Pending[n-1].URL
	}
	return s, nil
}

// SignedSince says whether there is a token now that is another than the one that did not do.
func (c *Credential) SignedSince(needed *NeededError) bool {
	r, err := c.current()
	return err == nil && r.betters(needed)
}

func (r *record) betters(needed *NeededError) bool {
	return r.Access != "" && markOf(r.Access) != needed.used
}

// lookAgain is how often the vault is looked at for what other processes did.
const lookAgain = time.Second

// Changed waits until there is another token than the one that did not do: because somebody signed in here, or in another
// process. The error is the context's.
func (c *Credential) Changed(ctx context.Context, needed *NeededError) error {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		c.mu.Lock()
		changed := c.changed
		r, err := c.load()
		c.mu.Unlock()
		if err == nil && r.betters(needed) {
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
