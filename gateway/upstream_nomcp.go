//go:build nomcp

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/webpage"
	"github.com/drawbridge-mcp/drawbridge/sandbox"
)

// noFleet is the fleet of a build without MCP servers: it starts none, and most methods return a fault.
type noFleet struct {
	mu   sync.Mutex
	rows []config.Server
}

// A noPool is the pool of a build without MCP servers. It has no servers.
type noPool struct{}

func newUpstreamPool(context.Context, *slog.Logger, Config, config.Settings, *store.DB, *secrets.Vault,
	questionFilter) (upstreamPool, error) {
	return noPool{}, nil
}

func (noPool) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (noPool) newFleet(*Gateway, Config, map[string]store.MountRecord) (fleet, error) {
	return &noFleet{}, nil
}

func newAccessProvider(_ context.Context, _ Config, _ config.Settings, _ *secrets.Vault, rows []config.Server) (
	accessProvider, error) {
	return &noFleet{rows: rows}, nil
}

var errNotSignedIn = errors.New("not signed in")

// MountedVariable is the name of an environment variable that a gateway sets for the servers that it starts.
const MountedVariable = "DRAWBRIDGE_MOUNTED"

// RunReaperProcess must be the first call in the main function of a program. If this process was started to read a PDF
// file, or to run Python scripts, RunReaperProcess does that work and never returns.
func RunReaperProcess() {
	webpage.RunIfPDFReader()
	sandbox.RunWorker()
}

// CheckConfinement returns nil in a build without MCP servers.
func CheckConfinement(config.Server, []string) error { return nil }

// ResolveProcess returns a fault in a build without MCP servers.
func ResolveProcess(config.Server, config.Settings, []string) (program string, names []string, err error) {
	return "", nil, noMCPFault()
}

func noMCPFault() error {
	return &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound,
		Step: "mount a server",
		Err:  drawbridge.NameError("this build has no MCP servers (it was made with the tag nomcp)"),
	}
}

func (*noFleet) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Running returns a closed channel, because there is no server to wait for.
func (*noFleet) Running() <-chan struct{} {
	begun := make(chan struct{})
	close(begun)
	return begun
}

func (*noFleet) Do(context.Context, drawbridge.ServerID, drawbridge.Call) (drawbridge.Result, error) {
	return drawbridge.Result{}, noMCPFault()
}

func (*noFleet) Mount(context.Context, drawbridge.ServerID) (drawbridge.Listing, error) {
	return drawbridge.Listing{}, noMCPFault()
}

func (*noFleet) Relist(context.Context, drawbridge.ServerID) (bool, error) {
	return false, noMCPFault()
}

func (*noFleet) AwaitFirstAttempt(context.Context, drawbridge.ServerID) error { return noMCPFault() }
func (*noFleet) Watch(context.Context, drawbridge.ServerID, drawbridge.WatchSet) error {
	return noMCPFault()
}
func (*noFleet) SetLogLevel(context.Context, string, string) error                               { return nil }
func (*noFleet) ForwardNotification(context.Context, string, string, json.RawMessage)            {}
func (*noFleet) SetRemembered(map[string]drawbridge.Listing, map[string]drawbridge.ServerStatus) {}
func (*noFleet) EndSession(string)                                                               {}
func (*noFleet) Hold(config.Server) error                                                        { return nil }
func (*noFleet) Release(drawbridge.ServerID)                                                     {}

func (n *noFleet) Add(row config.Server) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rows = append(n.rows, row)
	return nil
}

func (n *noFleet) Remove(id drawbridge.ServerID) (<-chan struct{}, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rows = slices.DeleteFunc(n.rows, func(row config.Server) bool { return row.ID == id })
	gone := make(chan struct{})
	close(gone)
	return gone, nil
}

func (n *noFleet) Status() []drawbridge.ServerStatus {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []drawbridge.ServerStatus
	for _, row := range n.rows {
		out = append(out, drawbridge.ServerStatus{
			Server: row.ID, Phase: drawbridge.Refused, Transport: row.Transport(),
			Era:    drawbridge.ProtocolEra(0).String(),
			Reason: "this build has no MCP servers (it was made with the tag nomcp)",
		})
	}
	return out
}

func (*noFleet) Reconnect(context.Context, drawbridge.ServerID) error { return noMCPFault() }

func (*noFleet) Notifications(drawbridge.ServerID) (drawbridge.NotificationReport, error) {
	return drawbridge.NotificationReport{}, noMCPFault()
}

func (*noFleet) ReadStderr(context.Context, drawbridge.ServerID, bool, func(string) error) error {
	return noMCPFault()
}

func (*noFleet) Access(drawbridge.ServerID, string) (drawbridge.SignInManager, error) {
	return nil, noMCPFault()
}
