package upstream

import (
	"context"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config"
)

// resolveValues returns the pairs of the row's member "env" or "header", with references resolved. Pairs that cannot be
// resolved are left out and reported in the status.
func (e *managedServer) resolveValues(ctx context.Context, member string, pairs []config.NameValue) []config.NameValue {
	found, missing := e.valueResolver().resolvePairs(ctx, member, pairs)
	e.redactor.addPairs(e.valueResolver(), member, found)
	for _, what := range missing {
		e.log.Warn("a value was left out", "what", what)
	}
	e.health.noteMissing(missing)
	return found
}

// withKey appends the row's stored API key to the pairs of a member, "env" or "header". The key replaces a pair that
// has the same name.
func (e *managedServer) withKey(ctx context.Context, member string, pairs []config.NameValue) ([]config.NameValue,
	error) {
	key, ok, err := e.valueResolver().resolveKey(ctx, member)
	if err != nil || !ok {
		return pairs, err
	}
	e.redactor.addToken(key.Value)
	pairs = slices.DeleteFunc(slices.Clone(pairs), func(p config.NameValue) bool {
		return p.Name == key.Name || member == "header" && strings.EqualFold(p.Name, key.Name)
	})
	return append(pairs, key), nil
}

// resolveAuth returns the row's auth with references resolved. It must be called only for a sign-in, since a reference
// may be a command that asks a person for input.
func (e *managedServer) resolveAuth(ctx context.Context) (config.Auth, error) {
	return e.valueResolver().resolveAuth(ctx)
}

func (e *managedServer) valueResolver() serverValueResolver {
	return serverValueResolver{Server: e.config, Resolver: &e.pool.secrets, Environ: e.environ}
}
