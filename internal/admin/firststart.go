package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// UnlistedServers returns the rows of the servers that can be started and from which Drawbridge has never received a
// listing.
func (r *Service) UnlistedServers(ctx context.Context) ([]config.Server, error) {
	statuses, list, err := r.ServerStatuses(ctx, false)
	if err != nil {
		return nil, err
	}
	rows := list.InForce()
	return slices.DeleteFunc(rows, func(row config.Server) bool {
		return row.Phase != drawbridge.Idle || !slices.ContainsFunc(statuses, func(s drawbridge.ServerStatus) bool {
			return s.Server == row.ID && s.Source == row.Origin.String() && s.Listed.IsZero()
		})
	}), nil
}

// StartProgressText returns a line for the person about servers that are starting for the first time, or "" if there
// are none. The line names package managers, such as npx, that download the servers' packages. since is the time since
// the start began.
func StartProgressText(waiting []config.Server, since time.Duration) string {
	var names, fetchers []string
	packages := 0
	for _, row := range waiting {
		names = append(names, string(row.ID))
		if d, ok := row.Download(); ok {
			packages++
			if !slices.Contains(fetchers, d.Program) {
				fetchers = append(fetchers, d.Program)
			}
		}
	}
	why := ""
	switch {
	case len(names) == 0:
		return ""
	case packages == 1:
		why = fmt.Sprintf(" (%s downloads the package on the first start)", fetchers[0])
	case packages > 1:
		why = fmt.Sprintf(" (%s downloads %d packages on the first start)", strings.Join(fetchers, " and "), packages)
	}
	if more := len(names) - 3; more > 0 {
		names = append(names[:3], fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("  starting %s%s, %d s", strings.Join(names, ", "), why, int(since.Seconds()))
}

// FirstStartProblem returns a short text for the person that explains why a server did not start. fault is the error of
// the start, and stderr are the lines that the server's program wrote to standard error. The text names the package if
// its download failed.
func FirstStartProblem(row config.Server, fault error, stderr []string) string {
	if problem := row.CommandLineProblem(); problem != "" {
		return problem
	}
	text := fault.Error()
	if f, ok := errors.AsType[*drawbridge.Fault](fault); ok && f.Err != nil {
		text = f.Err.Error()
	}
	if d, ok := row.Download(); ok && downloadFailed(fault, stderr) {
		return fmt.Sprintf("%s could not download %s (is there a network?): %s", row.Command, d.Name(), text)
	}
	return text
}

// downloadFailed reports whether a server probably did not start because its package could not be downloaded. That is
// assumed if the start took too long, or if stderr contains a known network error.
func downloadFailed(fault error, stderr []string) bool {
	if errors.Is(fault, context.DeadlineExceeded) {
		return true
	}
	return slices.ContainsFunc(stderr, func(line string) bool {
		for _, sign := range []string{"ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ENETUNREACH",
			"network request failed", "dns error", "error sending request"} {
			if strings.Contains(line, sign) {
				return true
			}
		}
		return false
	})
}
