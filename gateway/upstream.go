//go:build !nomcp

package gateway

import (
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/upstream"
)

var _ fleet = (*upstream.Fleet)(nil)

// A mcpPool is the servers that the gateways of one ground share.
type mcpPool struct{ *upstream.Pool }

func newUpstreamPool(log *slog.Logger, c Config, s config.Settings, db *store.DB, vault *secrets.Vault,
	look questionFilter) (upstreamPool, error) {
	var memory upstream.MountStore
	var expiryTime func(time.Time) time.Time
	if db != nil {
		memory, expiryTime = db, db.ExpiryTime
	}
	p, err := upstream.NewPool(upstream.Options{
		Logger: log, Version: c.Version, MountStore: memory, Roots: rootsOf(s), Principal: processOwner().Principal,
		Vault: vault, Keeper: vault.UserSecrets(), ExpiryTime: expiryTime,
		OnDemand: c.OnDemand, InheritEnv: s.EnvIsolation != nil && !*s.EnvIsolation,
		Elicitation: upstream.ElicitationRules{
			Enabled: s.ElicitationEnabled, Timeout: s.ElicitationTimeout, Capacity: s.ElicitationQueue,
			Inspect: look, NoSensitiveMarks: s.ElicitationWarnings != nil && !*s.ElicitationWarnings,
		},
		ProbeTimeout: s.ProbeTimeout, ConnectTimeout: s.ConnectTimeout, CallTimeout: s.CallTimeout,
		IdleStop: s.IdleStop,
	})
	return mcpPool{p}, err
}

// rootsOf returns the roots of the settings as the bridge takes them.
func rootsOf(s config.Settings) (roots []upstream.Root) {
	for _, root := range s.Roots {
		roots = append(roots, upstream.Root(root))
	}
	return roots
}

// newFleet makes the fleet of these rows, with what is remembered of them.
func (p mcpPool) newFleet(g *Gateway, c Config, rows []config.Server, mounts map[string]store.MountRecord) (fleet,
	error) {
	known, last := rememberedMounts(mounts)
	return p.Pool.NewFleet(rows, upstream.FleetOptions{
		KnownListings: known, LastStatuses: last, OnListed: g.enrolListing, OnNotification: g.forwardNotice,
		AdmitCall: g.blocked.Check, Environ: c.Environ,
	})
}

// forwardNotice takes what a server said outside any call; one that is quarantined says nothing.
func (g *Gateway) forwardNotice(n drawbridge.ServerNotification) {
	if row := g.rowByID(n.Server); g.shared.trustAccounts == nil || row == nil ||
		!g.shared.trustAccounts.Quarantined(row.trustAccount()) {
		g.deck.HandleNotification(n)
	}
}

// newAccessProvider is a fleet that never runs.
func newAccessProvider(c Config, s config.Settings, vault *secrets.Vault, rows []config.Server) (
	accessProvider, error) {
	p, err := newUpstreamPool(c.Logger, c, s, nil, vault, nil)
	if err != nil {
		return nil, err
	}
	return p.(mcpPool).Pool.NewFleet(rows, upstream.FleetOptions{Environ: c.Environ})
}

// errNotSignedIn is what there is where nobody is signed in.
var errNotSignedIn = upstream.ErrNotSignedIn

// MountedVariable is the environment variable by which a program knows that a gateway started it as a server.
const MountedVariable = upstream.MountedVariable

// RunReaperProcess is the first thing that a program's main calls: where this process was started to look after a
// server's processes, it does that and never returns.
func RunReaperProcess() { upstream.RunReaperProcess() }

// CheckConfinement says why a row that requires it cannot be confined on this machine; nil where it can, or does not
// ask for it.
func CheckConfinement(row config.Server, environ []string) error {
	return upstream.CheckConfinement(row, environ)
}

// ResolveProcess says what the server of a stdio row would be started as, without starting it: the program's path, and
// the names of the variables that it would find in its environment, in order. Environ is ours, as "name=value". The
// error says why there is no such program.
func ResolveProcess(row config.Server, s config.Settings, environ []string) (program string,
	names []string, err error) {
	program, env, err := upstream.ResolveProcess(row, environ, s.EnvIsolation != nil && !*s.EnvIsolation)
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	return program, slices.Compact(names), err
}
