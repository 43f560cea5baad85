package upstream

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// A secretRedactor replaces a server's secrets in its standard error and its errors. The zero value knows none. Its
// methods may be called from several goroutines.
type secretRedactor struct {
	mu sync.Mutex
	// configured are secrets of the row, tokens are access tokens, which change.
	configured, tokens []string
}

const (
	// minSecret is the length in bytes of the shortest secret: a shorter one may be an ordinary word.
	minSecret = 6
	// maxConfiguredSecrets and maxTokens bound how many are kept.
	maxConfiguredSecrets = 500
	maxTokens            = 20
)

// addPairs adds the values of a member's pairs, env or header, that are references or secret by their name.
func (v *secretRedactor) addPairs(r serverValueResolver, member string, pairs []config.NameValue) {
	named := map[string]string{}
	for _, p := range pairs {
		named[p.Name] = p.Value
	}
	row, err := json.Marshal(map[string]any{map[string]string{"env": "env", "header": "headers"}[member]: named})
	if err != nil {
		return
	}
	secret := config.PlaintextSecrets(row)
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range pairs {
		if name := member + " " + p.Name; r.DeferredParts(name) != nil || slices.Contains(secret, name) {
			v.configured = appendSecret(v.configured, p.Value, maxConfiguredSecrets)
		}
	}
}

// addToken adds a token.
func (v *secretRedactor) addToken(token string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tokens = appendSecret(v.tokens, token, maxTokens)
}

// appendSecret adds each line of a value to a list, without a scheme name such as Bearer, and drops the oldest entries
// above most.
func appendSecret(list []string, value string, most int) []string {
	for line := range strings.Lines(value) {
		line = strings.TrimSpace(line)
		if scheme, rest, ok := strings.Cut(line, " "); ok && slices.Contains([]string{"bearer", "basic", "token"},
			strings.ToLower(scheme)) {
			line = strings.TrimSpace(rest)
		}
		if len(line) >= minSecret && !slices.Contains(list, line) {
			list = append(list, line)
		}
	}
	return slices.Delete(list, 0, max(0, len(list)-most))
}

// redact returns the text without the secrets.
func (v *secretRedactor) redact(text string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var in []string
	for _, s := range slices.Concat(v.configured, v.tokens) {
		if strings.Contains(text, s) {
			in = append(in, s)
		}
	}
	// Longest first: a secret that is part of another leaves no remainder.
	slices.SortFunc(in, func(a, b string) int { return len(b) - len(a) })
	for _, s := range in {
		text = strings.ReplaceAll(text, s, drawbridge.Redacted)
	}
	return text
}

// redactError returns an error whose text has no secrets and that wraps err.
func (v *secretRedactor) redactError(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if shown := v.redact(text); shown != text {
		return redactedError{err, shown}
	}
	return err
}

type redactedError struct {
	err  error
	text string
}

func (e redactedError) Error() string { return e.text }
func (e redactedError) Unwrap() error { return e.err }

// A tokenSource supplies access tokens; see [transport.TokenSource].
type tokenSource interface {
	// Token returns the token to send.
	Token(ctx context.Context) (string, error)
	// ReplaceToken returns another token than the one that was refused.
	ReplaceToken(ctx context.Context, used string, status int, header http.Header,
		body []byte) (another string, err error)
}

// wrapTokenSource returns a token source with the same tokens, which are redacted from then on.
func (v *secretRedactor) wrapTokenSource(s tokenSource) tokenSource {
	return redactingTokenSource{s, v}
}

type redactingTokenSource struct {
	tokenSource
	redactor *secretRedactor
}

func (n redactingTokenSource) Token(ctx context.Context) (string, error) {
	token, err := n.tokenSource.Token(ctx)
	n.redactor.addToken(token)
	return token, err
}

func (n redactingTokenSource) ReplaceToken(ctx context.Context, used string, status int, header http.Header,
	body []byte) (another string, err error) {
	another, err = n.tokenSource.ReplaceToken(ctx, used, status, header, body)
	n.redactor.addToken(another)
	return another, err
}
