package gateway

import (
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway/asks"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// AskDetails are what a person is shown of a call that waits for them: what store.Ask and store.Grant have as Shown.
type AskDetails = asks.Details

// approver is who asks people about calls.
func (g *Gateway) approver() *asks.Desk {
	return &asks.Desk{DB: g.ground.db, Logger: g.log, Timeout: g.set.Settings.AskTimeout}
}

// fenced says which callers get results marked as foreign text although the server's row does not say so.
func (g *Gateway) fenced() func(drawbridge.Caller) bool {
	s := g.set.Settings
	always := s.FenceHTTP != nil && *s.FenceHTTP
	return func(c drawbridge.Caller) bool {
		return always && c.Door == drawbridge.HTTPDoor || len(s.FenceFor) > 0 && c.Kind == drawbridge.External && slices.ContainsFunc(s.FenceFor, func(name string) bool {
			return strings.EqualFold(name, strings.TrimSpace(wire.GetText(c.Client, "name"))) || c.Principal == "client:"+name
		})
	}
}
