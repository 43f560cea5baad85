package cli

import (
	"context"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// progressInterval is the interval between two updates of the status line.
const progressInterval = 200 * time.Millisecond

// withProgress calls work, which mounts servers, and meanwhile shows the servers that are still connecting. It removes
// the status line before it returns.
func (a *app) withProgress(ctx context.Context, g *gateway.Gateway, work func()) {
	ctx, stop := context.WithCancel(ctx)
	var showing sync.WaitGroup
	showing.Go(func() { a.showProgress(ctx, g) })
	work()
	stop()
	showing.Wait()
}

// showProgress shows in the status line of a terminal which servers are still connecting. It returns when ctx ends,
// when all have connected, or when none has begun to connect within two seconds.
func (a *app) showProgress(ctx context.Context, g *gateway.Gateway) {
	if !IsTerminal(a.Err) {
		return
	}
	start := time.Now()
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	defer a.statusLine.SetStatus("")
	for shown := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		late := connectingServers(g.Status())
		switch {
		case len(late) > 0:
			shown = true
			a.statusLine.SetStatus(safetext.Sprintf("mounting %s  %.1fs", joinFirst(late, 4),
				time.Since(start).Seconds()))
		case shown || time.Since(start) > 2*time.Second:
			return
		}
	}
}

func connectingServers(all []drawbridge.ServerStatus) (late []string) {
	for _, s := range all {
		if s.Phase == drawbridge.Connecting {
			late = append(late, string(s.Server))
		}
	}
	return late
}
