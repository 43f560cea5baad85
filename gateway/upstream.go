//go:build !nomcp

package gateway

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/upstream"
	"github.com/drawbridge-mcp/drawbridge/internal/webpage"
	"github.com/drawbridge-mcp/drawbridge/sandbox"
)

var _ fleet = (*upstream.Fleet)(nil)

// An mcpPool is an upstream.Pool, which holds the servers that all gateways on one Shared use.
type mcpPool struct{ *upstream.Pool }

func newUpstreamPool(ctx context.Context, log *slog.Logger, c Config, s config.Settings, db *store.DB,
	vault *secrets.Vault,
	look questionFilter) (upstreamPool, error) {
	var memory upstream.MountStore
	var expiryTime func(time.Time) time.Time
	if db != nil {
		memory, expiryTime = db, db.ExpiryTime
		if c.LeaveStatus {
			memory = listingStore{db}
		}
	}
	p, err := upstream.NewPool(ctx, upstream.Options{
		Logger: log, Version: c.Version, MountStore: memory, Roots: rootsOf(s), Principal: processOwner().Principal,
		Vault: vault, Keeper: vault.UserSecrets(), ExpiryTime: expiryTime,
		OnDemand: c.OnDemand, InheritEnv: s.EnvIsolation != nil && !*s.EnvIsolation,
		Elicitation: upstream.ElicitationRules{
			Enabled: s.ElicitationEnabled, Timeout: s.ElicitationTimeout, Capacity: s.ElicitationQueue,
			Inspect: look, NoSensitiveMarks: s.ElicitationWarnings != nil && !*s.ElicitationWarnings,
		},
		ProbeTimeout: s.ProbeTimeout, ConnectTimeout: s.ConnectTimeout, CallTimeout: s.CallTimeout,
		IdleStop: s.IdleStop, Answers: mcp.NewAnswerBudget(s.AnswersInFlight),
	})
	return mcpPool{p}, err
}

// A listingStore stores only the listings of servers. It ignores attempts and statuses, because another process runs
// the same servers and stores these.
type listingStore struct{ db *store.DB }

func (s listingStore) RecordAttempt(context.Context, string, drawbridge.ServerID) error { return nil }

func (s listingStore) SaveListing(ctx context.Context, l drawbridge.Listing) error {
	return s.db.SaveListing(ctx, l)
}

func (s listingStore) SaveStatus(context.Context, string, drawbridge.ServerStatus) error { return nil }

// rootsOf converts the roots of the settings to roots of package upstream.
func rootsOf(s config.Settings) (roots []upstream.Root) {
	for _, root := range s.Roots {
		roots = append(roots, upstream.Root(root))
	}
	return roots
}

// newFleet returns a fleet without servers for g, with the stored listings and statuses in mounts.
func (p mcpPool) newFleet(g *Gateway, c Config, mounts map[string]store.MountRecord) (fleet, error) {
	known, last := rememberedMounts(mounts)
	return p.Pool.NewFleet(nil, upstream.FleetOptions{
		KnownListings: known, LastStatuses: last, OnListed: g.enrolListing, OnNotification: g.forwardNotice,
		AdmitCall: g.blocked.Check, Environ: c.Environ,
		CallObservers: []upstream.CallObserver{g.shared.callLimiter, g.serverTrust},
	})
}

// forwardNotice passes a notification of a server to the deck, unless the server is in quarantine.
func (g *Gateway) forwardNotice(n drawbridge.ServerNotification) {
	if !g.serverTrust.Quarantined(n.Server) {
		g.deck.HandleNotification(n)
	}
}

// newAccessProvider returns a fleet of the servers in rows that is used only for signing in and out; its Run is never
// called.
func newAccessProvider(ctx context.Context, c Config, s config.Settings, vault *secrets.Vault, rows []config.Server) (
	accessProvider, error) {
	p, err := newUpstreamPool(ctx, c.Logger, c, s, nil, vault, nil)
	if err != nil {
		return nil, err
	}
	return p.(mcpPool).Pool.NewFleet(rows, upstream.FleetOptions{Environ: c.Environ})
}

// errNotSignedIn is the value of ErrNotSignedIn.
var errNotSignedIn = upstream.ErrNotSignedIn

// MountedVariable is the name of an environment variable that a gateway sets for the servers that it starts.
const MountedVariable = upstream.MountedVariable

// RunReaperProcess must be the first call in the main function of a program. If this process was started to supervise
// the processes of a server, to read a PDF file, or to run Python scripts, RunReaperProcess does that work and never
// returns. On Linux, a small program of Drawbridge supervises servers if the system can run it, also without this call.
func RunReaperProcess() {
	upstream.RunReaperProcess()
	webpage.RunIfPDFReader()
	sandbox.RunWorker()
}

// CheckConfinement returns an error if a row requires confinement that this machine does not offer. It returns nil if
// confinement is available, or not required.
func CheckConfinement(row config.Server, environ []string) error {
	return upstream.CheckConfinement(row, environ)
}

// ResolveProcess returns how the server of a stdio row would be started: the program's path, and the sorted names of
// the variables in its environment. It does not start the server. environ is the environment of this process, as
// "name=value". It returns an error for a program that does not exist or cannot be run.
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
