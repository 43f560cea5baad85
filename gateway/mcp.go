//go:build !nomcp

package gateway

import (
	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/store"
)

var _ fleet = (*bridge.Fleet)(nil)

// newFleet makes the fleet of these rows, with what is remembered of them.
func (g *Gateway) newFleet(c Config, rows []config.Server, mounts map[string]store.Mount) (fleet, error) {
	known, last := map[string]drawbridge.Listing{}, map[string]drawbridge.Status{}
	for row, m := range mounts {
		if m.Listing != nil {
			known[row] = *m.Listing
		}
		if m.Status != nil {
			last[row] = *m.Status
		}
	}
	s := g.set.Settings
	return bridge.New(rows, bridge.Options{
		Logger: g.log, Version: c.Version, Memory: g.db, Known: known, Last: last,
		OnListed: g.listed, OnNotice: g.deck.Notice, Roots: s.Roots, Principal: g.owner.Principal,
		OnDemand: c.OnDemand, InheritEnv: s.EnvIsolation != nil && !*s.EnvIsolation,
		ProbeTimeout: s.ProbeTimeout, ConnectTimeout: s.ConnectTimeout, CallTimeout: s.CallTimeout, IdleStop: s.IdleStop,
	})
}

// Mounted is the environment variable by which a program knows that a gateway started it as a server.
const Mounted = bridge.Mounted

// Reap is the first thing that a program's main calls: where this process was started to look after a server's processes,
// it does that and never returns.
func Reap() { bridge.Reap() }
