package gateway

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
)

// ErrNotSignedIn is the error of SignOut if the principal is not signed in.
var ErrNotSignedIn = errNotSignedIn

// ServerSignIn returns the owner's sign-in manager for a server that requires a sign-in. The credential is stored in
// the vault, and every gateway that uses this vault uses the credential; other processes see it within seconds.
// ServerSignIn returns an error for an unknown server, and for a server that requires no sign-in.
func (g *Gateway) ServerSignIn(id drawbridge.ServerID) (drawbridge.SignInManager, error) {
	return g.fleet.Access(id, g.owner.Principal)
}

// A SignInManager returns the sign-in manager of each server, for a process that does not open a gateway. It does not
// start or connect to servers.
type SignInManager struct{ fleet accessProvider }

// OpenSignInManager returns a SignInManager for the servers in rows, except refused servers. vault is that of a gateway
// with this configuration, as OpenVault returns it. If two servers have the same name, the first is used. The SignInManager need not be
// closed. The error is as for Open.
func OpenSignInManager(ctx context.Context, c Config, vault *secrets.Vault, rows []config.Server) (
	*SignInManager, error) {
	c = c.withLogger()
	s, err := loadSettings(c)
	if err != nil {
		return nil, err
	}
	var first []config.Server
	for _, row := range rows {
		if row.Phase == drawbridge.Refused || hasRowNamed(first, row.ID) {
			continue
		}
		row.Phase = drawbridge.Idle // a server that is turned off may have a credential
		first = append(first, row)
	}
	fleet, err := newAccessProvider(ctx, c, s, vault, first)
	return &SignInManager{fleet}, err
}

// ServerSignIn is like [Gateway.ServerSignIn]. A sign-in that begins in this process is lost when the process ends.
func (p *SignInManager) ServerSignIn(id drawbridge.ServerID) (drawbridge.SignInManager, error) {
	return p.fleet.Access(id, processOwner().Principal)
}
