package upstream

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge/config"
)

// resolveValues returns the pairs of a row's member, env or header, with references resolved. Pairs that are left out
// are reported in the status.
func (e *managedServer) resolveValues(ctx context.Context, member string, pairs []config.NameValue) []config.NameValue {
	found, missing := e.valueResolver().resolvePairs(ctx, member, pairs)
	e.redactor.addPairs(e.valueResolver(), member, found)
	for _, what := range missing {
		e.log.Warn("a value was left out", "what", what)
	}
	e.health.noteMissing(missing)
	return found
}

// resolveAuth returns the row's auth with references resolved. It is called only for a sign-in: a command may prompt a
// person.
func (e *managedServer) resolveAuth(ctx context.Context) (config.Auth, error) {
	return e.valueResolver().resolveAuth(ctx)
}

func (e *managedServer) valueResolver() serverValueResolver {
	return serverValueResolver{Server: e.config, Resolver: &e.pool.secrets, Environ: e.environ}
}
