package signin

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/bridge/egress"
)

// beginDevice begins a sign-in on another device: the person opens an address there and enters a code. The error says so
// where the authorization server offers no such thing.
func (c *Credential) beginDevice(ctx context.Context) (*Flow, error) {
	r, demand, unlock, err := c.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s, err := c.discover(ctx, demand)
	switch {
	case err != nil:
		return nil, err
	case s.Device == "":
		return nil, errors.New("the authorization server offers no sign-in by device: sign in with a browser, or paste the address it ends at")
	}
	who, err := c.identify(ctx, s, r, nil)
	if err != nil {
		return nil, err
	}
	if who.Registered {
		r.know(who, s)
		if err := c.keep(r); err != nil {
			return nil, err
		}
	}
	d := device{c: c, s: s, who: who, scopes: c.scopesFor(s, demand, nil)}
	address, code, err := d.begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("begin a sign-in by device: %w", err)
	}
	return &Flow{url: address, code: code, issuer: hostOf(s.Issuer), c: c, device: d.wait}, nil
}

// A device is a sign-in that waits for a person on another device (RFC 8628).
type device struct {
	c      *Credential
	s      site
	who    client
	scopes []string
	secret string // the device's own code
	every  time.Duration
	ends   time.Time
}

// begin asks for a code, and gives what to show.
func (d *device) begin(ctx context.Context) (address, code string, err error) {
	const usual, long = 5 * time.Second, 15 * time.Minute
	values := url.Values{}
	if len(d.scopes) > 0 {
		values.Set("scope", strings.Join(d.scopes, " "))
	}
	if d.s.Resource != "" {
		values.Set("resource", d.s.Resource)
	}
	said, err := d.c.ask(ctx, d.s.Device, d.s, d.who, values)
	if err != nil {
		return "", "", err
	}
	address, code, d.secret = said.text("verification_uri"), printable(said.text("user_code")), said.text("device_code")
	if address == "" {
		address = said.text("verification_url") // as it was called in a draft
	}
	if d.every = said.seconds("interval"); d.every == 0 {
		d.every = usual
	}
	life := said.seconds("expires_in")
	if life == 0 {
		life = long
	}
	d.ends = time.Now().Add(life)
	if code == "" || d.secret == "" {
		return "", "", errors.New("the authorization server's answer has no code")
	}
	if err := egress.Check(address); err != nil {
		return "", "", fmt.Errorf("the address to sign in at %w", err)
	}
	return address, code, nil
}

// wait asks until the person has said yes or no, or the code's time is over. A server that is away for a moment is asked
// again.
func (d *device) wait(ctx context.Context) error {
	ctx, cancel := context.WithDeadline(ctx, d.ends)
	defer cancel()
	timer := time.NewTimer(d.every)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		err := d.ask(ctx)
		said, refused := errors.AsType[*refusal](err)
		switch {
		case err == nil:
			return nil
		case refused && said.code == "slow_down":
			d.every += 5 * time.Second // RFC 8628, 3.5
		case refused && said.code == "authorization_pending":
		case refused && !said.final(), unreachable(err):
			d.every = min(2*d.every, time.Minute)
		default:
			return err
		}
		timer.Reset(d.every)
	}
}

func (d *device) ask(ctx context.Context) error {
	t, err := d.c.grant(ctx, d.s, d.who, url.Values{"grant_type": {deviceGrant}, "device_code": {d.secret}})
	if err != nil {
		return err
	}
	unlock, err := d.c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := d.c.current()
	if err != nil {
		return err
	}
	return d.c.receive(r, d.s, d.who, t, d.scopes)
}
