package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
)

// progressEvery is how often the progress line is drawn anew.
const progressEvery = 200 * time.Millisecond

// A screen is standard error, with at most one line at its end that changes. What is written goes above that line.
type screen struct {
	mu   sync.Mutex
	w    io.Writer
	line string
}

// Write writes p and draws the changing line again under it.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line == "" {
		return s.w.Write(p)
	}
	if _, err := io.WriteString(s.w, eraseLine); err != nil {
		return 0, err
	}
	n, err := s.w.Write(p)
	if err == nil {
		_, err = io.WriteString(s.w, s.line)
	}
	return n, err
}

// draw changes the line; an empty one is taken away.
func (s *screen) draw(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if line == s.line {
		return
	}
	s.line = line
	_, _ = io.WriteString(s.w, eraseLine+line) // a terminal that is gone shows nothing
}

const eraseLine = "\r\x1b[K"

// whileShown does something that servers are mounted for, shows who is late, and has the line taken away before it returns.
func (a *app) whileShown(ctx context.Context, g *gateway.Gateway, work func()) {
	ctx, stop := context.WithCancel(ctx)
	var showing sync.WaitGroup
	showing.Go(func() { a.showProgress(ctx, g) })
	work()
	stop()
	showing.Wait()
}

// showProgress says on a terminal which servers are still being mounted, until none is.
func (a *app) showProgress(ctx context.Context, g *gateway.Gateway) {
	if !isTerminal(a.Err) {
		return
	}
	start := time.Now()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	defer a.screen.draw("")
	for shown := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		late := mounting(g.Status())
		switch {
		case len(late) > 0:
			shown = true
			a.screen.draw(fmt.Sprintf("mounting %s  %.1fs", names(late, 4), time.Since(start).Seconds()))
		case shown || time.Since(start) > 2*time.Second:
			return
		}
	}
}

func mounting(all []drawbridge.Status) (late []string) {
	for _, s := range all {
		if s.Phase == drawbridge.Connecting {
			late = append(late, string(s.Server))
		}
	}
	return late
}

// names joins the first n of all and counts the rest.
func names(all []string, n int) string {
	if len(all) <= n {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:n], ", "), len(all)-n)
}
