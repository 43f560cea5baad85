package gateway

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// flaggedResults stores the findings of the result scanner. It adds them to the audit, as an additional record of the
// call. It also stores them for the command "drawbridge shield results". Secrets are redacted.
type flaggedResults struct {
	db    *store.DB
	audit *store.AuditWriter // nil means no audit
	rules audit.RedactionRules
}

var _ deck.ScanRecorder = flaggedResults{}

func newFlaggedResults(db *store.DB, a *store.AuditWriter, vault *secrets.Vault) flaggedResults {
	return flaggedResults{db, a, audit.RedactionRules{KnownSecrets: vault.Known().All}}
}

// RecordScans implements [deck.ScanRecorder].
func (f flaggedResults) RecordScans(ctx context.Context, server drawbridge.ServerID, counts deck.ScanCounts,
	flagged []deck.FlaggedResult) error {
	var errs []error
	scan := store.ResultScan{Scanned: counts.Scanned, Flagged: counts.Flagged, Skipped: counts.Skipped}
	for _, r := range flagged {
		if f.audit != nil && !r.Recorded {
			errs = append(errs, f.audit.Record(audit.FlaggedRecord(r.CallID, string(server), r.Card, r.Tool, r.Rules)))
		}
		if f.audit == nil {
			r.CallID = ""
		}
		scan.Results = append(scan.Results, store.FlaggedResult{CallID: r.CallID, Principal: r.Principal,
			Card: f.rules.RedactText(r.Card), Method: r.Method, Rules: r.Rules,
			Excerpt: f.rules.RedactText(r.Excerpt)})
	}
	return errors.Join(append(errs, f.db.AddResultScan(ctx, server, scan))...)
}

// scanDrainTimeout is the maximum time for which Close examines queued results. Results that are then still queued are
// counted as not examined.
const scanDrainTimeout = 2 * time.Second

// closeScanner examines the queued results, for at most scanDrainTimeout, and closes the scanner.
func (g *Shared) closeScanner() error {
	ctx, cancel := context.WithTimeout(g.closing, scanDrainTimeout)
	defer cancel()
	return g.scanner.Close(ctx)
}

// scansForeignTexts reports whether Drawbridge examines texts from outside, such as results and web pages, after they
// were sent to the caller. See scansResults for the results of one server.
func (g *Gateway) scansForeignTexts() bool {
	return cmp.Or(g.config.Shield.ScanResults, g.set.Settings.Shield.ScanResults) != config.ScanOff
}

// scansResults reports whether the results of a server are examined after they were sent to the caller. They are not
// examined if the server's configuration has the trust "trusted", unless a project configures the server.
func (g *Gateway) scansResults(row config.Server) bool {
	return g.scansForeignTexts() && (row.Trust != "trusted" || row.Origin.Kind == config.OriginProject)
}
