package upstream

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// Hold adds a server that does not start before Release, or before it is called, mounted, watched or signed in to.
// Until then it has no status and cannot be listed. The error is as for Add.
func (f *Fleet) Hold(row config.Server) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.checkRow(row); err != nil {
		return err
	}
	f.held[row.ID] = row
	return nil
}

// Release lets a held server start. It does nothing for any other.
func (f *Fleet) Release(id drawbridge.ServerID) {
	f.mu.Lock()
	row, held := f.held[id]
	if !held {
		f.mu.Unlock()
		return
	}
	delete(f.held, id)
	f.addAndUnlock(row)
}

// isHeld reports whether a server is held.
func (f *Fleet) isHeld(id drawbridge.ServerID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, held := f.held[id]
	return held
}

// awaitServer waits until Run has begun, since the first calls may come before. It returns the server, which is
// released if it was held.
func (f *Fleet) awaitServer(ctx context.Context, id drawbridge.ServerID) (*managedServer, error) {
	select {
	case <-f.started:
	case <-ctx.Done():
		return nil, &drawbridge.Fault{
			Kind: drawbridge.BridgeFault, Code: drawbridge.Transient, Step: "the gateway does not run", Err: ctx.Err(),
		}
	}
	f.Release(id)
	return f.serverByID(id)
}
