package gateway

import (
	"github.com/drawbridge-mcp/drawbridge/internal/guards"
	"github.com/drawbridge-mcp/drawbridge/internal/spotlight"
)

// ApprovalDetails describes a call that waits for approval, as a person sees it. It is the member Shown of
// store.PendingApproval and store.Grant.
type ApprovalDetails = guards.ApprovalDetails

// An ApprovalObserver is a [drawbridge.Peer] that learns which of the owner's calls waits for approval.
type ApprovalObserver = guards.ApprovalObserver

// approvalQueue returns the queue of calls that wait for approval.
func (g *Gateway) approvalQueue() *guards.ApprovalQueue {
	return &guards.ApprovalQueue{DB: g.shared.db, Logger: g.log, Timeout: g.set.Settings.AskTimeout}
}

// spotlightFilter returns a function that reports whether a caller gets results marked as foreign text, by the
// settings. The setting in the row of a server takes precedence.
func (g *Gateway) spotlightFilter() spotlight.CallerFilter {
	s := g.set.Settings
	return spotlight.CallerFilter{HTTP: s.SpotlightHTTP != nil && *s.SpotlightHTTP, Clients: s.SpotlightClients}
}
