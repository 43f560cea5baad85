package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A ResultScan counts the results of one server that were scanned after they were returned to the caller, and lists
// the flagged results.
type ResultScan struct {
	// Scanned is the number of scanned results, and Flagged the number of scanned results that matched rules.
	// Skipped is the number of results that were not scanned.
	Scanned int `json:"scanned"`
	Flagged int `json:"flagged"`
	Skipped int `json:"skipped"`
	// Since is the time at which counting began.
	Since time.Time `json:"since"`
	// Results are the flagged results, latest first.
	Results []FlaggedResult `json:"results,omitempty"`
}

// A FlaggedResult describes a result that matched rules of the shield when it was scanned, after it was returned to
// the caller. The result itself is not stored. Results that differ only in their time and call ID share one
// FlaggedResult.
type FlaggedResult struct {
	// ID is the name that people use for the result.
	ID string `json:"id"`
	// First and Last are the times of the first and the last such result. Times is the number of such results.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	Times int       `json:"times"`
	// CallID is the ID, in the audit, of the last call with such a result; empty if calls are not recorded.
	CallID string `json:"call,omitempty"`
	// Principal is the caller, who called Card with Method.
	Principal string `json:"principal"`
	Card      string `json:"card"`
	Method    string `json:"method"`
	// Rules are the rules that the result matched. Excerpt is the text that the first rule matched.
	Rules   []string `json:"rules"`
	Excerpt string   `json:"excerpt,omitempty"`
}

const (
	resultScanKind = "result scans"
	// maxFlaggedResults is the maximum number of flagged results of one server, and flaggedResultRetention their
	// maximum age.
	maxFlaggedResults      = 100
	flaggedResultRetention = heldResultRetention
	// maxFlaggedText is the maximum length in bytes of a text in a flagged result.
	maxFlaggedText = 512
)

// AddResultScan adds the counts and the flagged results of more to the stored scan of a server. It sets ID, First,
// Last, Times and Since. It removes flagged results that are older than 30 days, and the oldest ones if the server
// has more than 100.
func (db *DB) AddResultScan(ctx context.Context, server drawbridge.ServerID, more ResultScan) error {
	return db.UpdateAccount(ctx, resultScanKind, string(server), func(body []byte, now time.Time) ([]byte, error) {
		var scan ResultScan
		if json.Unmarshal(body, &scan) != nil { // the server has no scan yet, or the stored scan is damaged
			scan = ResultScan{Since: now}
		}
		scan.add(more, now)
		return json.Marshal(scan)
	})
}

// add adds the counts and flagged results of more to s.
func (s *ResultScan) add(more ResultScan, now time.Time) {
	s.Scanned += more.Scanned
	s.Flagged += more.Flagged
	s.Skipped += more.Skipped
	for _, r := range more.Results {
		r.Card = safetext.Truncate(r.Card, maxFlaggedText, safetext.Bytes, "…")
		r.Excerpt = safetext.Truncate(r.Excerpt, maxFlaggedText, safetext.Bytes, "…")
		r.ID, r.First, r.Last, r.Times = strings.ToLower(rand.Text()[:8]), now, now, 1
		if i := slices.IndexFunc(s.Results, r.isSame); i >= 0 {
			old := s.Results[i]
			r.ID, r.First, r.Times = old.ID, old.First, old.Times+1
			s.Results = slices.Delete(s.Results, i, i+1)
		}
		s.Results = slices.Insert(s.Results, 0, r)
	}
	s.removeOld(now)
	s.Results = s.Results[:min(len(s.Results), maxFlaggedResults)]
}

func (s *ResultScan) removeOld(now time.Time) {
	s.Results = slices.DeleteFunc(s.Results, func(r FlaggedResult) bool {
		return now.Sub(r.Last) > flaggedResultRetention
	})
}

// FlaggedTimes returns the number of flagged results, as the sum of Times over all stored FlaggedResults.
func (s ResultScan) FlaggedTimes() (n int) {
	for _, r := range s.Results {
		n += r.Times
	}
	return n
}

// isSame reports whether two flagged results differ only in their times, ID and call ID.
func (r FlaggedResult) isSame(other FlaggedResult) bool {
	return r.Principal == other.Principal && r.Card == other.Card && r.Method == other.Method &&
		r.Excerpt == other.Excerpt && slices.Equal(r.Rules, other.Rules)
}

// ResultScans returns the scans of all servers, without flagged results that are older than 30 days.
func (db *DB) ResultScans(ctx context.Context) (map[drawbridge.ServerID]ResultScan, error) {
	bodies, err := db.Accounts(ctx, resultScanKind)
	if err != nil {
		return nil, err
	}
	all := make(map[drawbridge.ServerID]ResultScan, len(bodies))
	for server, body := range bodies {
		var scan ResultScan
		if err := json.Unmarshal(body, &scan); err != nil {
			return nil, db.fault("read the examined results", fmt.Errorf("the record of %s is damaged: %w", server, err))
		}
		scan.removeOld(time.Now())
		all[drawbridge.ServerID(server)] = scan
	}
	return all, nil
}
