//go:build !nomcp

package gateway

import (
	"log/slog"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/bridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/secrets"
	"github.com/drawbridge-mcp/drawbridge/store"
)

var _ fleet = (*bridge.Fleet)(nil)

// A bridgePool is the servers that the gateways of one ground share.
type bridgePool struct{ *bridge.Pool }

func newPool(log *slog.Logger, c Config, s config.Settings, db *store.DB, vault *secrets.Vault, look questioner) (pool, error) {
	var memory bridge.Memory
	if db != nil {
		memory = db
	}
	p, err := bridge.NewPool(bridge.Options{
		Logger: log, Version: c.Version, Memory: memory, Roots: rootsOf(s), Principal: owner().Principal,
		Vault: vault, Keeper: vault.Values(),
		OnDemand: c.OnDemand, InheritEnv: s.EnvIsolation != nil && !*s.EnvIsolation,
		Elicitation: bridge.Elicitation{
			Enabled: s.ElicitationEnabled, Timeout: s.ElicitationTimeout, Capacity: s.ElicitationQueue,
			Look: look, Unmarked: s.ElicitationWarns != nil && !*s.ElicitationWarns,
		},
		ProbeTimeout: s.ProbeTimeout, ConnectTimeout: s.ConnectTimeout, CallTimeout: s.CallTimeout, IdleStop: s.IdleStop,
	})
	return bridgePool{p}, err
}

// rootsOf returns the roots of the settings as the bridge takes them.
func rootsOf(s config.Settings) (roots []bridge.Root) {
	for _, root := range s.Roots {
		roots = append(roots, bridge.Root(root))
	}
	return roots
}

// fleet makes the fleet of these rows, with what is remembered of them.
func (p bridgePool) fleet(g *Gateway, c Config, rows []config.Server, mounts map[string]store.Mount) (fleet, error) {
	known, last := recalled(mounts)
	return p.Pool.Fleet(rows, bridge.Part{
		Known: known, Last: last, OnListed: g.listed, OnNotice: g.noticed, Admit: g.bars.admit, Environ: c.Environ,
	})
}

// noticed takes what a server said outside any call; one that is quarantined says nothing.
func (g *Gateway) noticed(n drawbridge.Notice) {
	if row := g.row(n.Server); g.ground.book == nil || row == nil || !g.ground.book.Quarantined(row.account()) {
		g.deck.Notice(n)
	}
}

// newSigner is a fleet that never runs.
func newSigner(c Config, s config.Settings, vault *secrets.Vault, rows []config.Server) (signer, error) {
	p, err := newPool(c.Logger, c, s, nil, vault, nil)
	if err != nil {
		return nil, err
	}
	return p.(bridgePool).Pool.Fleet(rows, bridge.Part{Environ: c.Environ})
}

// errNobody is what there is where nobody is signed in.
var errNobody = bridge.ErrNobody

// Mounted is the environment variable by which a program knows that a gateway started it as a server.
const Mounted = bridge.Mounted

// Reap is the first thing that a program's main calls: where this process was started to look after a server's processes,
// it does that and never returns.
func Reap() { bridge.Reap() }

// Unconfinable says why a row that requires it cannot be confined on this machine; nil where it can, or does not ask for it.
func Unconfinable(row config.Server, environ []string) error {
	return bridge.Unconfinable(row, environ)
}

// Child says what the server of a stdio row would be started as, without starting it: the program's path, and the names of
// the variables that it would find in its environment, in order. Environ is ours, as "name=value". The error says why
// there is no such program.
func Child(row config.Server, s config.Settings, environ []string) (program string, names []string, err error) {
	program, env, err := bridge.Child(row, environ, s.EnvIsolation != nil && !*s.EnvIsolation)
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	return program, slices.Compact(names), err
}
