package admin

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// A FlaggedResult describes a result of a server that was sent to its caller, and in which rules of the shield matched
// afterwards. The result itself is not stored. Equal results at different times are counted in one FlaggedResult.
type FlaggedResult struct {
	ID string `json:"id"`
	// First and At are the times of the first and the last of these equal results. Times is their number.
	First time.Time `json:"first"`
	At    time.Time `json:"at"`
	Times int       `json:"times"`
	// CallID is the ID, in the audit, of the call that returned the last of these results; empty if calls are not
	// recorded.
	CallID string              `json:"call,omitempty"`
	Caller string              `json:"caller"`
	Method string              `json:"method"`
	Server drawbridge.ServerID `json:"server"`
	Card   string              `json:"card"`
	// Rules are the names of the shield's rules that matched. Excerpt is the part of the result in which the first of
	// them matched.
	Rules   []string `json:"met"`
	Excerpt string   `json:"excerpt,omitempty"`
}

// A ScanSummary counts the results of one server whose results are examined after they were sent to their callers.
type ScanSummary struct {
	Server drawbridge.ServerID `json:"server"`
	// Scanned is the number of examined results. Flagged is the number of examined results in which a rule matched.
	// Skipped is the number of results that should have been examined but were not.
	Scanned int `json:"scanned"`
	Flagged int `json:"flagged"`
	Skipped int `json:"skipped"`
	// Since is the time when the counting began.
	Since time.Time `json:"since"`
}

// FlaggedResults returns the flagged results of all servers, latest first. It also returns a summary for each server
// whose results are examined, sorted by server name.
func (r *Service) FlaggedResults(ctx context.Context) ([]FlaggedResult, []ScanSummary, error) {
	db, err := r.openStoreOfSettings(ctx, false)
	if err != nil || db == nil {
		return nil, nil, err
	}
	scans, err := db.ResultScans(ctx)
	if err = closeStore(db, err); err != nil {
		return nil, nil, err
	}
	var all []FlaggedResult
	var counts []ScanSummary
	for server, scan := range scans {
		counts = append(counts, ScanSummary{server, scan.Scanned, scan.Flagged, scan.Skipped, scan.Since})
		for _, one := range scan.Results {
			all = append(all, newFlaggedResult(server, one))
		}
	}
	slices.SortFunc(counts, func(a, b ScanSummary) int { return cmp.Compare(a.Server, b.Server) })
	slices.SortFunc(all, func(a, b FlaggedResult) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.ID, b.ID))
	})
	return all, counts, nil
}

func newFlaggedResult(server drawbridge.ServerID, r store.FlaggedResult) FlaggedResult {
	return FlaggedResult{ID: r.ID, First: r.First, At: r.Last, Times: r.Times, CallID: r.CallID, Caller: r.Principal,
		Method: r.Method, Server: server, Card: r.Card, Rules: r.Rules, Excerpt: r.Excerpt}
}
