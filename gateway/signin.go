package gateway

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// ErrNotSignedIn is returned by a sign-out without a sign-in.
var ErrNotSignedIn = errNotSignedIn

// ServerSignIn returns the sign-in of the owner at a server that requires one. The credential is kept in the vault for
// every gateway with that vault; other processes see it within seconds. The error is for an unknown server, and for one
// that requires no sign-in.
func (g *Gateway) ServerSignIn(id drawbridge.ServerID) (drawbridge.SignInManager, error) {
	return g.fleet.Access(id, g.owner.Principal)
}

// A SignInManager reports which servers have a sign-in, and signs out. It starts no server and connects to none.
type SignInManager struct{ fleet accessProvider }

// OpenSignInManager opens a SignInManager for rows, except those that were refused, with the vault of a gateway with
// that configuration. Of two rows with one name the first counts. It needs no Close. The error is as for Open.
func OpenSignInManager(ctx context.Context, c Config, rows []config.Server) (*SignInManager, error) {
	c = c.withLogger()
	s, err := loadSettings(c)
	if err != nil {
		return nil, err
	}
	vault, err := openVault(c, s)
	if err != nil {
		return nil, err
	}
	var first []config.Server
	for _, row := range rows {
		if row.Phase == drawbridge.Refused || hasRowNamed(first, row.ID) {
			continue
		}
		row.Phase = drawbridge.Idle // a server that is off may have a credential
		first = append(first, row)
	}
	fleet, err := newAccessProvider(ctx, c, s, vault, first)
	return &SignInManager{fleet}, err
}

// ServerSignIn is like Gateway.ServerSignIn. A sign-in that it begins ends with the process.
func (p *SignInManager) ServerSignIn(id drawbridge.ServerID) (drawbridge.SignInManager, error) {
	return p.fleet.Access(id, processOwner().Principal)
}
