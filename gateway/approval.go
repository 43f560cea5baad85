package gateway

import (
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/guards"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// ApprovalDetails are what a person is shown of a call that waits for them: what store.PendingApproval and store.Grant
// have as Shown.
type ApprovalDetails = guards.ApprovalDetails

// approvalQueue is who asks people about calls.
func (g *Gateway) approvalQueue() *guards.ApprovalQueue {
	return &guards.ApprovalQueue{DB: g.shared.db, Logger: g.log, Timeout: g.set.Settings.AskTimeout}
}

// spotlightFilter says which callers get results marked as foreign text although the server's row does not say so.
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
