package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"golang.org/x/sync/errgroup"
)

// shownStderrLines is how many lines of a failing server's standard error are shown.
const shownStderrLines = 5

// tryServers is the second step of "setup": it starts each server that was never listed, and prints the results.
func (s *setupRun) tryServers(ctx context.Context) error {
	s.heading(2, "start each server once")
	fresh, err := s.adminService().UnlistedServers(ctx)
	if err != nil {
		return err
	}
	switch {
	case s.flags.noList:
		fmt.Fprintln(s.Out, "no server was started (--no-list)")
		fresh = nil
	case len(fresh) == 0:
		text := "✓ every server was started before"
		if set, err := s.readConfig(ctx); err == nil && len(set.Servers) == 0 {
			text = "no server is configured yet"
		}
		fmt.Fprintln(s.Out, text)
	}
	g, err := s.openOnDemandGateway(ctx)
	if err != nil {
		return err
	}
	defer g.Close()
	return s.withRunningGateway(ctx, g, func(ctx context.Context) error {
		s.startServers(ctx, g, fresh)
		s.cards = g.Deck().Cards(g.Owner())
		return ctx.Err()
	})
}

// startServers mounts the servers at the same time, and prints the result of each server as soon as it is known.
func (a *app) startServers(ctx context.Context, g *gateway.Gateway, rows []config.Server) {
	w := &startProgress{app: a, begun: time.Now(), waiting: slices.Clone(rows)}
	watch, stop := context.WithCancel(ctx)
	var group, drawing errgroup.Group
	drawing.Go(func() error { w.draw(watch); return nil })
	for _, row := range rows {
		group.Go(func() error {
			listing, err := g.Mount(ctx, row.ID)
			w.finish(g, row, listing, err)
			return nil
		})
	}
	_ = group.Wait() // each result was printed
	stop()
	_ = drawing.Wait()
}

// A startProgress shows which servers are still starting, and prints the result of each.
type startProgress struct {
	*app
	begun time.Time

	mu      sync.Mutex
	waiting []config.Server
}

// draw shows the starting servers and the elapsed seconds in the status line of a terminal, until ctx ends.
func (w *startProgress) draw(ctx context.Context) {
	if !IsTerminal(w.Err) {
		return
	}
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	defer w.statusLine.SetStatus("")
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		w.mu.Lock()
		text := admin.StartProgressText(w.waiting, time.Since(w.begun))
		w.mu.Unlock()
		w.statusLine.SetStatus(truncateLine(text, 79))
	}
}

// finish removes a server from the waiting servers and prints its result.
func (w *startProgress) finish(g *gateway.Gateway, row config.Server, l drawbridge.Listing, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = slices.DeleteFunc(w.waiting, func(s config.Server) bool { return s.ID == row.ID })
	var b strings.Builder
	took := time.Since(w.begun).Seconds()
	switch {
	case errors.Is(err, context.Canceled):
		return
	case err == nil:
		safetext.Fprintf(&b, "  ✓ %s: %s, %.1f s\n", row.ID, formatCount(len(l.Tools), "tool"), took)
	default:
		safetext.Fprintf(&b, "  ✗ %s: %s\n", row.ID, admin.FirstStartProblem(row, err, statusOf(g, row).Stderr))
		lines := statusOf(g, row).Stderr
		for _, line := range lines[max(0, len(lines)-shownStderrLines):] {
			safetext.Fprintf(&b, "      stderr| %s\n", line)
		}
		safetext.Fprintf(&b, "      try it again: drawbridge mcp test %s\n", row.ID)
	}
	_, _ = w.statusLine.Write([]byte(b.String())) // a closed terminal shows nothing
}

func statusOf(g *gateway.Gateway, row config.Server) drawbridge.ServerStatus {
	for _, s := range g.Status() {
		if s.Server == row.ID && s.Source == row.Origin.String() {
			return s
		}
	}
	return drawbridge.ServerStatus{Server: row.ID}
}
