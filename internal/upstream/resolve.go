package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
)

// A serverValueResolver replaces the references in a server's row, such as ${keychain:NAME}, by values. The values come
// from files, the keychain and commands. Commands run with the environment Environ. Errors contain no resolved values.
// A value that cannot be sent unchanged, because it contains control characters, is an error.
type serverValueResolver struct {
	config.Server
	Resolver *secrets.Resolver
	Environ  []string
}

// resolvePairs returns the pairs of a row's member, "env" or "header", with their references resolved. A pair that
// cannot be resolved is left out, since the server may not need it. missing contains a description of each such pair.
func (r serverValueResolver) resolvePairs(ctx context.Context, member string, pairs []config.NameValue) (
	found []config.NameValue, missing []string) {
	if len(r.DeferredValues) == 0 {
		return pairs, nil
	}
	for _, p := range pairs {
		name := member + " " + p.Name
		if parts := r.DeferredParts(name); parts != nil {
			value, err := r.resolveValue(ctx, member, parts)
			if err != nil {
				missing = append(missing, fmt.Sprintf("%s is left out: %v", name, err))
				continue
			}
			p.Value = value
		}
		found = append(found, p)
	}
	return found, missing
}

// resolveAuth returns the row's auth with its references resolved. It returns an error if any member cannot be
// resolved. No member can be left out, unlike a pair of resolvePairs, since a sign-in would fail without it. The error
// names the member and contains no secret.
func (r serverValueResolver) resolveAuth(ctx context.Context) (config.Auth, error) {
	if r.Auth == nil {
		return config.Auth{}, nil
	}
	auth := *r.Auth
	for _, m := range []struct {
		name string
		to   *string
	}{
		{"client_id", &auth.ClientID}, {"client_secret", &auth.ClientSecret}, {"private_key", &auth.PrivateKey},
		{"idp_client_id", &auth.IDPClientID}, {"idp_client_secret", &auth.IDPClientSecret}, {"id_token", &auth.IDToken},
	} {
		parts := r.DeferredParts("auth " + m.name)
		if parts == nil {
			continue
		}
		value, err := r.resolveValue(ctx, "auth", parts)
		if err != nil {
			return config.Auth{}, fmt.Errorf("find the %s in \"auth\": %w", m.name, err)
		}
		*m.to = value
	}
	return auth, nil
}

// resolveKey returns the row's stored API key as a pair for the member, "env" or "header". It returns false if the row
// has no key for that member. If the key cannot be read, the error names the credential, and the server must not be
// started. Without its key, the server would refuse every call.
func (r serverValueResolver) resolveKey(ctx context.Context, member string) (config.NameValue, bool, error) {
	target, name := r.KeyTarget()
	if target != member {
		return config.NameValue{}, false, nil
	}
	id := r.Auth.CredentialID
	key, err := r.resolveValue(ctx, member, []config.ValuePart{{Kind: config.KeychainPart, Text: id}})
	if err != nil {
		return config.NameValue{}, false, missingKeyError{id, err}
	}
	if r.Auth.Header == "" && member == "header" {
		key = "Bearer " + key
	}
	return config.NameValue{Name: name, Value: key}, true, nil
}

// A missingKeyError reports that the API key of a row cannot be read.
type missingKeyError struct {
	credential string
	cause      error
}

func (m missingKeyError) Error() string {
	return fmt.Sprintf("the credential %q, named in \"auth\", has no key: %v", m.credential, m.cause)
}

func (m missingKeyError) Unwrap() error { return m.cause }

// FaultCode returns AuthFailure.
func (m missingKeyError) FaultCode() drawbridge.FaultCode { return drawbridge.AuthFailure }

// resolveValue resolves the parts of a value and joins them. The error contains no part of the value.
func (r serverValueResolver) resolveValue(ctx context.Context, member string, parts []config.ValuePart) (
	string, error) {
	var b strings.Builder
	for _, p := range parts {
		text := p.Text
		if p.Kind != config.LiteralPart {
			var err error
			if text, err = r.Resolver.Value(ctx, secrets.ReferenceKind(p.Kind), p.Text, r.Environ); err != nil {
				return "", err
			}
		}
		b.WriteString(text)
	}
	stray := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	if member == "env" || member == "auth" { // the value may have several lines
		stray = func(r rune) bool { return r == 0 }
	}
	if strings.ContainsFunc(b.String(), stray) {
		return "", errors.New("the value contains a line break or another control character")
	}
	return b.String(), nil
}

// environFromPairs returns pairs as "name=value" strings of an environment.
func environFromPairs(pairs []config.NameValue) []string {
	env := make([]string, 0, len(pairs))
	for _, p := range pairs {
		env = append(env, p.Name+"="+p.Value)
	}
	return env
}

// headerFromPairs returns pairs as HTTP headers.
func headerFromPairs(pairs []config.NameValue) http.Header {
	h := http.Header{}
	for _, p := range pairs {
		h.Add(p.Name, p.Value)
	}
	return h
}
