package gateway

import "github.com/drawbridge-mcp/drawbridge"

// Access gives how the owner of the gateway comes to be let in by a server that wants to know who asks. What a sign-in comes to
// is kept in the vault, for every gateway that has it; those of other processes see it within seconds. The error is for an
// unknown name, and for a server that is not signed in at.
func (g *Gateway) Access(id drawbridge.ServerID) (drawbridge.Access, error) {
	return g.fleet.Access(id, g.owner.Principal)
}
