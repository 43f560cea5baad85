package upstream

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge/config"
)

// resolveValues gives the pairs of a row's member, env or header, with what their references stand for in their
// places. What is left out is told in the status.
func (e *managedServer) resolveValues(ctx context.Context, member string, pairs []config.NameValue) []config.NameValue {
	found, missing := e.valueResolver().resolvePairs(ctx, member, pairs)
	e.redactor.addPairs(e.valueResolver(), member, found)
	for _, what := range missing {
		e.log.Warn("a value was left out", "what", what)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.missingValues = missing
	return found
}

// resolveAuth gives how to sign in. It is not asked for before somebody signs in: a command may ask a person something.
func (e *managedServer) resolveAuth(ctx context.Context) (config.Auth, error) {
	return e.valueResolver().resolveAuth(ctx)
}

func (e *managedServer) valueResolver() serverValueResolver {
	return serverValueResolver{Server: e.config, Resolver: &e.pool.secrets, Environ: e.environ}
}
