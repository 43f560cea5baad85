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

// A secretRedactor hides what a server was given and nobody else is to see where the server says it again: on standard
// error, in an error. The zero value hides nothing yet. Its methods may be called from several goroutines.
type secretRedactor struct {
	mu sync.Mutex
	// configured are those of the row, passing are tokens, which come and go.
	configured, tokens []string
}

const (
	// A shorter text may be a word of the server's own.
	minSecret = 6
	// maxConfiguredSecrets and maxTokens are how many are known at a time.
	maxConfiguredSecrets = 500
	maxTokens            = 20
)

// addPairs hides those of a member's pairs, env or header, that a row refers to, and those that are secrets by their
// names.
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

// addToken hides a token.
func (v *secretRedactor) addToken(token string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tokens = appendSecret(v.tokens, token, maxTokens)
}

// appendSecret adds a value to a list, of which the oldest go: each line of it, and what follows the name of a scheme
// such as Bearer.
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

// redact gives a text without the secrets.
func (v *secretRedactor) redact(text string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var in []string
	for _, s := range slices.Concat(v.configured, v.tokens) {
		if strings.Contains(text, s) {
			in = append(in, s)
		}
	}
	// The longest first: none is left over when another that is a part of it was hidden.
	slices.SortFunc(in, func(a, b string) int { return len(b) - len(a) })
	for _, s := range in {
		text = strings.ReplaceAll(text, s, drawbridge.Redacted)
	}
	return text
}

// redactError gives an error that says the same without the secrets, and wraps the other.
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

// A tokenSource hands out tokens, as that of a connection over HTTP does.
type tokenSource interface {
	// Token gives the token to send.
	Token(ctx context.Context) (string, error)
	// ReplaceToken gives another one than that which was refused.
	ReplaceToken(ctx context.Context, used string, status int, header http.Header,
		body []byte) (another string, err error)
}

// wrapTokenSource gives a Signer that hands out the same tokens, which are hidden from then on.
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
