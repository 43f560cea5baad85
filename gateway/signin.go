package gateway

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// ErrNobody is wrapped where there is nothing to sign out of.
var ErrNobody = errNobody

// SignIn begins a sign-in at a server that wants to know who asks: in a browser that comes back to this machine, or on another
// device. What it comes to is kept in the vault, for every gateway that has it; gateways of other processes see it within
// seconds. The error is for an unknown name, a server that is not signed in at, and what kept the sign-in from being begun.
func (g *Gateway) SignIn(ctx context.Context, id drawbridge.ServerID, device bool) (drawbridge.SignIn, error) {
	return g.fleet.SignIn(ctx, id, g.owner.Principal, device)
}

// PasteSignIn ends a sign-in that was begun by this process or another with the address that the browser ended at.
func (g *Gateway) PasteSignIn(ctx context.Context, id drawbridge.ServerID, text string) error {
	return g.fleet.PasteSignIn(ctx, id, g.owner.Principal, text)
}

// SignOut removes what is kept of a server's sign-in, and revokes it where its issuer lets it; why says why not, nil where it
// was.
func (g *Gateway) SignOut(ctx context.Context, id drawbridge.ServerID) (why, err error) {
	return g.fleet.SignOut(ctx, id, g.owner.Principal)
}

// SignedIn says how we stand with a server, without asking it.
func (g *Gateway) SignedIn(id drawbridge.ServerID) (drawbridge.Credential, error) {
	return g.fleet.SignedIn(id, g.owner.Principal)
}

// A Porter knows how we stand with servers, and signs out of them. It starts none, and asks none.
type Porter struct{ fleet signer }

// OpenPorter makes a porter for these rows, but for those that mean nothing, with the vault that a gateway of that configuration has. Of
// two rows of one name the first counts. There is nothing to close. The error is as for Open.
func OpenPorter(c Config, rows []config.Server) (*Porter, error) {
	c = c.withLogger()
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	vault, err := openVault(c, s)
	if err != nil {
		return nil, err
	}
	var first []config.Server
	for _, row := range rows {
		if row.Phase == drawbridge.Refused || named(first, row.ID) {
			continue
		}
		row.Phase = drawbridge.Idle // for one that is off there may be a credential all the same
		first = append(first, row)
	}
	fleet, err := newSigner(c, s, vault, first)
	return &Porter{fleet}, err
}

// SignedIn says how we stand with a server. The error is as for Gateway.SignedIn.
func (p *Porter) SignedIn(id drawbridge.ServerID) (drawbridge.Credential, error) {
	return p.fleet.SignedIn(id, owner().Principal)
}

// SignOut removes and revokes, as Gateway.SignOut does.
func (p *Porter) SignOut(ctx context.Context, id drawbridge.ServerID) (why, err error) {
	return p.fleet.SignOut(ctx, id, owner().Principal)
}
