package gateway

import (
	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// ErrNotSignedIn is wrapped where there is nothing to sign out of.
var ErrNotSignedIn = errNotSignedIn

// ServerSignIn gives how the owner of the gateway comes to be let in by a server that wants to know who asks. What a
// sign-in comes to is kept in the vault, for every gateway that has it; those of other processes see it within
// seconds. The error is for an unknown name, and for a server that is not signed in at.
func (g *Gateway) ServerSignIn(id drawbridge.ServerID) (drawbridge.SignInManager, error) {
	if err := g.starter.releaseRow(id); err != nil {
		return nil, err
	}
	return g.fleet.Access(id, g.owner.Principal)
}

// A SignInManager knows how we stand with servers, and signs out of them. It starts none, and asks none.
type SignInManager struct{ fleet accessProvider }

// OpenSignInManager makes a porter for these rows, but for those that mean nothing, with the vault that a gateway of
// that configuration has. Of two rows of one name the first counts. There is nothing to close. The error is as for
// Open.
func OpenSignInManager(c Config, rows []config.Server) (*SignInManager, error) {
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
		row.Phase = drawbridge.Idle // for one that is off there may be a credential all the same
		first = append(first, row)
	}
	fleet, err := newAccessProvider(c, s, vault, first)
	return &SignInManager{fleet}, err
}

// ServerSignIn is as Gateway.ServerSignIn. What is begun with it ends with the process.
func (p *SignInManager) ServerSignIn(id drawbridge.ServerID) (drawbridge.SignInManager, error) {
	return p.fleet.Access(id, processOwner().Principal)
}
