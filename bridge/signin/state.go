package signin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	s.Signed, s.Expires, s.Renews = r.Access != "", r.Expires, r.Refresh != "" || c.site.Grant == Credentials
	s.Scopes, s.Trouble = r.Scopes, r.Trouble
	if r.Site.Issuer != "" {
		s.Issuer = hostOf(r.Site.Issuer)
	}
	if n := len(r.Pending); n > 0 {
		s.URL = r.Pending[n-1].URL
	}
	return s, nil
}

// stampNow tells the token that there is now from others, without being it; it is empty for none.
func (c *Credential) stampNow() string {
	r, err := c.current()
	if err != nil {
		return ""
	}
	return stampOf(r.Access)
}

func stampOf(token string) string {
	if token == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:8])
}

// Done says whether there is another token than the one for which a sign-in was needed: what went wrong for want of it may go
// well now.
func (c *Credential) Done(needed *NeededError) bool {
	now := c.stampNow()
	return now != "" && now != needed.stamp
}

// Await waits until Done. The error is the context's.
func (c *Credential) Await(ctx context.Context, needed *NeededError) error {
	return c.await(ctx, func(r record) bool { return stampOf(r.Access) != needed.stamp })
}

// lookAgain is how often the vault is looked at for what other processes did.
const lookAgain = time.Second

// Changed waits until what is kept is another than the token used: because somebody signed in here, or in another process.
// The error is the context's.
func (c *Credential) Changed(ctx context.Context, used string) error {
	return c.await(ctx, func(r record) bool { return r.Access != used })
}

// await waits until there is a token of which another says that it is the one.
func (c *Credential) await(ctx context.Context, is func(record) bool) error {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		c.mu.Lock()
		changed := c.changed
		r, err := c.load()
		c.mu.Unlock()
		if err == nil && r.Access != "" && is(r) {
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
