package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/safehttp"
)

// beginDevice begins a sign-in on another device: the person opens an address there and enters a code. It returns an
// error if the authorization server does not support such sign-ins.
func (c *Credential) beginDevice(ctx context.Context) (*Flow, error) {
	r, demand, unlock, err := c.lockAndLoad(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s, err := c.discoverAuthServer(ctx, demand)
	switch {
	case err != nil:
		return nil, err
	case s.Device == "":
		return nil, errors.New(
			"the authorization server does not offer sign-in by device: sign in with a browser, or paste the address it ends at")
	}
	if err := c.checkEndpoints(r, s, s.Device); err != nil {
		return nil, err
	}
	who, err := c.clientFor(ctx, s, r, nil)
	if err != nil {
		return nil, err
	}
	if who.Registered {
		r.rememberClient(who, s)
		if err := c.lockAndSave(r); err != nil {
			return nil, err
		}
	}
	d := deviceSignIn{c: c, server: s, client: who, scopes: c.chooseScopes(s, demand, nil)}
	address, code, err := d.requestCode(ctx)
	if err != nil {
		return nil, fmt.Errorf("begin a sign-in by device: %w", err)
	}
	// a hostile server may send the person to the page of an honest server, with a code of that server
	if err := c.checkEndpoints(r, s, address); err != nil {
		return nil, err
	}
	return &Flow{url: address, code: code, issuer: hostOf(s.Issuer), elsewhere: s.elsewhere(address), c: c,
		pollDevice: d.pollUntilDone}, nil
}

// A deviceSignIn is a sign-in that waits for a person on another device (RFC 8628).
type deviceSignIn struct {
	c            *Credential
	server       authServer
	client       clientIdentity
	scopes       []string
	deviceCode   string // the code in the token requests; the person enters a different one
	pollInterval time.Duration
	expires      time.Time
}

// requestCode requests a device code. It returns the address and the code to show to the person.
func (d *deviceSignIn) requestCode(ctx context.Context) (address, code string, err error) {
	const usual, long = 5 * time.Second, 15 * time.Minute
	values := url.Values{}
	if len(d.scopes) > 0 {
		values.Set("scope", strings.Join(d.scopes, " "))
	}
	if d.server.Resource != "" {
		values.Set("resource", d.server.Resource)
	}
	resp, err := d.c.postAsClient(ctx, d.server.Device, d.server, d.client, values)
	if err != nil {
		return "", "", err
	}
	address, code, d.deviceCode = resp.text("verification_uri"), printable(resp.text("user_code")),
		resp.text("device_code")
	if address == "" {
		address = resp.text("verification_url") // the name in a draft of RFC 8628
	}
	if d.pollInterval = resp.seconds("interval"); d.pollInterval == 0 {
		d.pollInterval = usual
	}
	life := resp.seconds("expires_in")
	if life == 0 {
		life = long
	}
	d.expires = time.Now().Add(life)
	if code == "" || d.deviceCode == "" {
		return "", "", errors.New("the authorization server's response has no code")
	}
	if err := safehttp.CheckURL(address); err != nil {
		return "", "", fmt.Errorf("the address to sign in at %w", err)
	}
	return address, code, nil
}

// pollUntilDone requests a token at intervals until the person has accepted or declined, or the code has expired. It
// continues after a temporary failure.
func (d *deviceSignIn) pollUntilDone(ctx context.Context) error {
	ctx, cancel := context.WithDeadline(ctx, d.expires)
	defer cancel()
	timer := time.NewTimer(d.pollInterval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		err := d.pollOnce(ctx)
		refusal, refused := errors.AsType[*oauthError](err)
		switch {
		case err == nil:
			return nil
		case refused && refusal.code == "slow_down":
			d.pollInterval += 5 * time.Second // RFC 8628, 3.5
		case refused && refusal.code == "authorization_pending":
		case refused && !refusal.isPermanent(), isNetworkError(err):
			d.pollInterval = min(2*d.pollInterval, time.Minute)
		default:
			return err
		}
		timer.Reset(d.pollInterval)
	}
}

func (d *deviceSignIn) pollOnce(ctx context.Context) error {
	t, err := d.c.requestToken(ctx, d.server, d.client, url.Values{"grant_type": {deviceGrant},
		"device_code": {d.deviceCode}})
	if err != nil {
		return err
	}
	unlock, err := d.c.lockCredential(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := d.c.currentRecord()
	if err != nil {
		return err
	}
	return d.c.storeGrant(r, d.server, d.client, t, d.scopes)
}
