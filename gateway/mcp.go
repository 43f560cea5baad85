//go:build !nomcp

package gateway

import (
	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

var _ fleet = (*bridge.Fleet)(nil)

// newFleet makes the fleet of these rows.
func (g *Gateway) newFleet(c Config, rows []config.Server, known map[string]drawbridge.Listing) (fleet, error) {
	s := g.set.Settings
	return bridge.New(rows, bridge.Options{
		Logger: g.log, Version: c.Version, Memory: g.db, Known: known,
		OnListed: g.listed, OnNotice: g.deck.Notice, Roots: s.Roots, Principal: g.owner.Principal,
		OnDemand: c.OnDemand, InheritEnv: s.EnvIsolation != nil && !*s.EnvIsolation,
		ProbeTimeout: s.ProbeTimeout, ConnectTimeout: s.ConnectTimeout, CallTimeout: s.CallTimeout, IdleStop: s.IdleStop,
	})
}

// Reap is the first thing that a program's main calls: where this process was started to look after a server's processes,
// it does that and never returns.
func Reap() { bridge.Reap() }
