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

// A secretRedactor replaces a server's secrets in texts such as errors and standard error. The zero value contains no
// secrets. Its methods may be called from several goroutines.
type secretRedactor struct {
	mu sync.Mutex
	// configured are the secrets of the row. tokens are access tokens, of which only the last maxTokens are stored.
	configured, tokens []string
}

const (
	// minSecret is the minimum length in bytes of a secret. A shorter value is not redacted, since it may be an
	// ordinary word.
	minSecret = 6
	// maxConfiguredSecrets and maxTokens bound the number of stored secrets.
	maxConfiguredSecrets = 500
	maxTokens            = 20
)

// addPairs adds the secret values of pairs. member is "env" or "header". A value is secret if it was resolved from a
// reference or if its name indicates a secret.
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

// addToken adds an access token or API key.
func (v *secretRedactor) addToken(token string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tokens = appendSecret(v.tokens, token, maxTokens)
}

// appendSecret appends each line of value to a list of secrets, without a scheme name such as Bearer. most is the
// maximum length of the list; at the maximum, the oldest secrets are deleted.
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

// redact returns the text with each secret replaced by drawbridge.Redacted.
func (v *secretRedactor) redact(text string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var in []string
	for _, s := range slices.Concat(v.configured, v.tokens) {
		if strings.Contains(text, s) {
			in = append(in, s)
		}
	}
	// Longest first: if a secret is part of another secret, the whole longer secret is replaced.
	slices.SortFunc(in, func(a, b string) int { return len(b) - len(a) })
	for _, s := range in {
		text = strings.ReplaceAll(text, s, drawbridge.Redacted)
	}
	return text
}

// redactError returns an error that wraps err and whose text contains no secrets.
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
	// ReplaceToken returns another token after the server refused the token used.
	ReplaceToken(ctx context.Context, used string, status int, header http.Header,
		body []byte) (another string, err error)
}

// wrapTokenSource returns a token source that returns the tokens of s and adds each token to the redactor.
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
