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

// UnlistedServers returns the servers in force that can be started but were never listed.
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

// StartProgressText returns a line about servers that are starting for the first time. It names the package managers
// that download the servers' packages. since is the time since the start.
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

// FirstStartProblem returns a short reason why a server did not start, for a person. If the download of the server's
// package failed, the text says so.
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

// downloadFailed reports whether a package manager could not download its package. It could not reach the registry, or
// the start took too long.
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
