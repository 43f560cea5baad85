package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
)

// progressEvery is how often the progress line is drawn anew.
const progressEvery = 200 * time.Millisecond

// showProgress keeps one line on a terminal that says which servers are still being mounted, until none is.
func (a *app) showProgress(ctx context.Context, g *gateway.Gateway) {
	if !isTerminal(a.Err) {
		return
	}
	start := time.Now()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	drawn := false
	defer func() {
		if drawn {
			io.WriteString(a.Err, "\r\x1b[K")
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		late := mounting(g.Status())
		if len(late) == 0 {
			if drawn || time.Since(start) > 2*time.Second {
				return
			}
			continue
		}
		fmt.Fprintf(a.Err, "\r\x1b[Kmounting %s  %.1fs", names(late, 4), time.Since(start).Seconds())
		drawn = true
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
