package upstream

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// Hold adds a server to the fleet without starting it. The server is added as by Add when Release is called, or when
// the server is called, mounted, watched or signed in to. Until then Status does not report the server, and Relist does
// nothing. Hold returns the same errors as Add.
func (f *Fleet) Hold(row config.Server) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.checkRow(row); err != nil {
		return err
	}
	f.held[row.ID] = row
	return nil
}

// Release adds a held server to the fleet as Add does. It does nothing for any other server.
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

// isHeld reports whether a server was added by Hold and not yet released.
func (f *Fleet) isHeld(id drawbridge.ServerID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, held := f.held[id]
	return held
}

// awaitServer waits until Run has begun, since the first calls may arrive earlier. It then releases the server if it is
// held, and returns the server.
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
