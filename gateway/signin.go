package gateway

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
)

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
