package bridge

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge/bridge/values"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// values gives the pairs of a row's member, env or header, with what their references stand for in their places. What is left
// out is told in the status.
func (e *endpoint) values(ctx context.Context, member string, pairs []config.Pair) []config.Pair {
	found, missing := e.referring().Pairs(ctx, member, pairs)
	e.veil.NotePairs(e.referring(), member, found)
	for _, what := range missing {
		e.log.Warn("a value was left out", "what", what)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.missing = missing
	return found
}

// auth gives how to sign in. It is not asked for before somebody signs in: a command may ask a person something.
func (e *endpoint) auth(ctx context.Context) (config.Auth, error) { return e.referring().SignIn(ctx) }

func (e *endpoint) referring() values.Row {
	return values.Row{Server: e.row, Resolver: &e.pool.secrets, Environ: e.environ}
}
