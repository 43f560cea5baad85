package gateway

import (
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/guards"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// ApprovalDetails describes a call that waits for approval, as a person sees it. It is the member Shown of
// store.PendingApproval and store.Grant.
type ApprovalDetails = guards.ApprovalDetails

// approvalQueue returns the queue of calls that wait for approval.
func (g *Gateway) approvalQueue() *guards.ApprovalQueue {
	return &guards.ApprovalQueue{DB: g.shared.db, Logger: g.log, Timeout: g.set.Settings.AskTimeout}
}

// spotlightFilter returns a function that reports whether a caller gets results marked as foreign text, by the
// settings. The setting in the row of a server takes precedence.
func (g *Gateway) spotlightFilter() func(drawbridge.Caller) bool {
	s := g.set.Settings
	always := s.SpotlightHTTP != nil && *s.SpotlightHTTP
	return func(c drawbridge.Caller) bool {
		return always && c.Transport == drawbridge.HTTPTransport || len(s.SpotlightClients) > 0 &&
			c.Kind == drawbridge.External && slices.ContainsFunc(s.SpotlightClients, func(name string) bool {
			return strings.EqualFold(name, strings.TrimSpace(rawjson.GetString(c.Client, "name"))) ||
				c.Principal == "client:"+name
		})
	}
}
