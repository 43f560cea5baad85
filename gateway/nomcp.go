//go:build nomcp

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/secrets"
	"github.com/drawbridge-mcp/drawbridge/store"
)

// none is the fleet of a build without MCP servers.
type none struct{ rows []config.Server }

// noPool is what such fleets share: nothing.
type noPool struct{}

func newPool(*slog.Logger, Config, config.Settings, *store.DB, *secrets.Vault, questioner) (pool, error) {
	return noPool{}, nil
}

func (noPool) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (noPool) fleet(_ *Gateway, _ Config, rows []config.Server, _ map[string]store.Mount) (fleet, error) {
	return &none{rows}, nil
}

func newSigner(_ Config, _ config.Settings, _ *secrets.Vault, rows []config.Server) (signer, error) {
	return &none{rows}, nil
}

var errNobody = errors.New("nobody is signed in")

// Mounted is the environment variable by which a program knows that a gateway started it as a server.
const Mounted = "DRAWBRIDGE_MOUNTED"

// Reap does nothing in a build without MCP servers: no process is ever started.
func Reap() {}

// Unconfinable finds nothing in a build without MCP servers.
func Unconfinable(config.Server, []string) error { return nil }

// Child finds nothing in a build without MCP servers.
func Child(config.Server, config.Settings, []string) (program string, names []string, err error) {
	return "", nil, absent()
}

func absent() error {
	return &drawbridge.Fault{
		Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound,
		Step: "mount a server", Err: drawbridge.BadName("this build has no MCP servers (it was made with the tag nomcp)"),
	}
}

func (*none) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Running is closed from the start: nothing has to be waited for.
func (*none) Running() <-chan struct{} {
	begun := make(chan struct{})
	close(begun)
	return begun
}

func (*none) Do(context.Context, drawbridge.ServerID, drawbridge.Call) (drawbridge.Result, error) {
	return drawbridge.Result{}, absent()
}

func (*none) Mount(context.Context, drawbridge.ServerID) (drawbridge.Listing, error) {
	return drawbridge.Listing{}, absent()
}

func (*none) Relist(context.Context, drawbridge.ServerID) (bool, error) { return false, absent() }

func (*none) Attempted(context.Context, drawbridge.ServerID) error                 { return absent() }
func (*none) Watch(context.Context, drawbridge.ServerID, drawbridge.Watched) error { return absent() }
func (*none) SetLevel(context.Context, string, string) error                       { return nil }
func (*none) Tell(context.Context, string, string, json.RawMessage)                {}
func (*none) Recall(map[string]drawbridge.Listing, map[string]drawbridge.Status)   {}
func (*none) EndSession(string)                                                    {}
func (*none) Add(config.Server) error                                              { return nil }

func (*none) Remove(drawbridge.ServerID) (<-chan struct{}, error) {
	gone := make(chan struct{})
	close(gone)
	return gone, nil
}

func (n *none) Status() []drawbridge.Status {
	var out []drawbridge.Status
	for _, row := range n.rows {
		out = append(out, drawbridge.Status{
			Server: row.ID, Phase: drawbridge.Refused, Transport: row.Transport(), Era: drawbridge.Era(0).String(),
			Reason: "this build has no MCP servers (it was made with the tag nomcp)",
		})
	}
	return out
}

func (*none) Stderr(context.Context, drawbridge.ServerID, bool, func(string) error) error {
	return absent()
}

func (*none) Access(drawbridge.ServerID, string) (drawbridge.Access, error) { return nil, absent() }
