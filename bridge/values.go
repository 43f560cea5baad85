package bridge

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/secrets"
)

// values gives the pairs of a row's member, env or header, with what their references stand for in the places of these. One
// whose reference gives nothing is left out, and told in the status: the server may do without.
func (e *endpoint) values(ctx context.Context, member string, pairs []config.Pair) []config.Pair {
	if len(e.row.Deferred) == 0 {
		return pairs
	}
	var found []config.Pair
	var missing []string
	for _, p := range pairs {
		name := member + " " + p.Name
		if parts := e.row.Parts(name); parts != nil {
			value, err := e.value(ctx, member, parts)
			if err != nil {
				e.log.Warn("a value was left out", "value", name, "error", err)
				missing = append(missing, fmt.Sprintf("%s is left out: %v", name, err))
				continue
			}
			p.Value = value
		}
		found = append(found, p)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.missing = missing
	return found
}

// auth gives how to sign in, with what its references stand for in their places. It is not asked for before somebody signs
// in: a command may ask a person something. The error names the member whose reference gives nothing, and has no secret in it;
// a client that is registered with a secret cannot do without.
func (e *endpoint) auth(ctx context.Context) (config.Auth, error) {
	if e.row.Auth == nil {
		return config.Auth{}, nil
	}
	auth := *e.row.Auth
	for _, m := range []struct {
		name string
		to   *string
	}{{"client_id", &auth.ClientID}, {"client_secret", &auth.ClientSecret}} {
		parts := e.row.Parts("auth " + m.name)
		if parts == nil {
			continue
		}
		value, err := e.value(ctx, "auth", parts)
		if err != nil {
			return config.Auth{}, fmt.Errorf("find the %s in \"auth\": %w", m.name, err)
		}
		*m.to = value
	}
	return auth, nil
}

// value puts a value of a member together of its parts. The error has none of them in it.
func (e *endpoint) value(ctx context.Context, member string, parts []config.Part) (string, error) {
	var b strings.Builder
	for _, p := range parts {
		text := p.Text
		if p.Kind != config.Literal {
			var err error
			if text, err = e.pool.secrets.Value(ctx, secrets.Kind(p.Kind), p.Text, e.environ); err != nil {
				return "", err
			}
		}
		b.WriteString(text)
	}
	stray := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	if member == "env" { // it may have more than a line
		stray = func(r rune) bool { return r == 0 }
	}
	if strings.ContainsFunc(b.String(), stray) {
		return "", errors.New("what was found has a line break or another control character in it")
	}
	return b.String(), nil
}
