package gateway

import (
	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway/asks"
)

// AskDetails are what a person is shown of a call that waits for them: what store.Ask and store.Grant have as Shown.
type AskDetails = asks.Details

// approver is who asks people about calls.
func (g *Gateway) approver() *asks.Desk {
	return &asks.Desk{DB: g.ground.db, Logger: g.log, Timeout: g.set.Settings.AskTimeout}
}

// fenced says which callers get results marked as foreign text although the server's row does not say so.
func (g *Gateway) fenced() func(drawbridge.Caller) bool {
	set := g.set.Settings.FenceHTTP
	always := set != nil && *set
	return func(c drawbridge.Caller) bool { return always && c.Door == drawbridge.HTTPDoor }
}
