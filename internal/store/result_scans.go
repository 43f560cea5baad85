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

// A ResultScan counts the results of one server that were examined after they were passed on, and holds the flagged
// ones.
type ResultScan struct {
	// Scanned counts the examined results, Flagged those of them that matched rules, and Skipped those that were not
	// examined.
	Scanned int `json:"scanned"`
	Flagged int `json:"flagged"`
	Skipped int `json:"skipped"`
	// Since is when counting began.
	Since time.Time `json:"since"`
	// Results are the flagged results, the latest first.
	Results []FlaggedResult `json:"results,omitempty"`
}

// A FlaggedResult is a result that was passed on and matched rules. The result itself is not kept. Results that differ
// only in their time are one.
type FlaggedResult struct {
	// ID names it for people.
	ID string `json:"id"`
	// First and Last are the times of the first and the last such result; Times counts them.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	Times int       `json:"times"`
	// CallID is the id of the last call in the audit; empty if calls are not recorded.
	CallID string `json:"call,omitempty"`
	// Principal called Card by Method.
	Principal string `json:"principal"`
	Card      string `json:"card"`
	Method    string `json:"method"`
	// Rules are the rules that the result matched, and Excerpt is the match of the first one.
	Rules   []string `json:"rules"`
	Excerpt string   `json:"excerpt,omitempty"`
}

const (
	resultScanKind = "result scans"
	// maxFlaggedResults is how many flagged results of one server are kept, and flaggedResultRetention how long.
	maxFlaggedResults      = 100
	flaggedResultRetention = heldResultRetention
	// maxFlaggedText bounds the bytes of a text of a flagged result.
	maxFlaggedText = 512
)

// AddResultScan adds the counts and the flagged results of a server. ID, First, Last, Times and Since are filled in.
// Flagged results that are older than 30 days are removed, and the oldest if there are more than 100 of the server.
func (db *DB) AddResultScan(ctx context.Context, server drawbridge.ServerID, more ResultScan) error {
	return db.UpdateAccount(ctx, resultScanKind, string(server), func(body []byte, now time.Time) ([]byte, error) {
		var scan ResultScan
		if json.Unmarshal(body, &scan) != nil { // there is none yet, or it is damaged
			scan = ResultScan{Since: now}
		}
		scan.add(more, now)
		return json.Marshal(scan)
	})
}

// add adds counts and flagged results.
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

// FlaggedTimes returns how often a result was flagged, among the results that are kept.
func (s ResultScan) FlaggedTimes() (n int) {
	for _, r := range s.Results {
		n += r.Times
	}
	return n
}

// isSame reports whether two results differ in nothing but their time.
func (r FlaggedResult) isSame(other FlaggedResult) bool {
	return r.Principal == other.Principal && r.Card == other.Card && r.Method == other.Method &&
		r.Excerpt == other.Excerpt && slices.Equal(r.Rules, other.Rules)
}

// ResultScans returns the scans of all servers, without results that are older than 30 days.
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
