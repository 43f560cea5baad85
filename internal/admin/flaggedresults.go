package admin

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// A FlaggedResult is a result that was passed on to its caller and matched rules of the shield. The result itself is
// not kept. Results that differ only in their time are one.
type FlaggedResult struct {
	ID string `json:"id"`
	// First and At are the times of the first and the last such result; Times counts them.
	First time.Time `json:"first"`
	At    time.Time `json:"at"`
	Times int       `json:"times"`
	// CallID is the id of the last call in the audit; empty if calls are not recorded.
	CallID string              `json:"call,omitempty"`
	Caller string              `json:"caller"`
	Method string              `json:"method"`
	Server drawbridge.ServerID `json:"server"`
	Card   string              `json:"card"`
	// Rules names the rules of the shield that matched, and Excerpt is the match of the first one.
	Rules   []string `json:"met"`
	Excerpt string   `json:"excerpt,omitempty"`
}

// A ScanSummary counts the results of one server that were to be examined after they were passed on.
type ScanSummary struct {
	Server drawbridge.ServerID `json:"server"`
	// Scanned were examined, Flagged of them matched rules, and Skipped were not examined.
	Scanned int `json:"scanned"`
	Flagged int `json:"flagged"`
	Skipped int `json:"skipped"`
	// Since is when counting began.
	Since time.Time `json:"since"`
}

// FlaggedResults returns the results that were flagged after they were passed on, the latest first, and the counts of
// all servers by name.
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
