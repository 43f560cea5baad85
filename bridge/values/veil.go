package values

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

// A Veil hides what a server was given and nobody else is to see where the server says it again: on standard error, in an
// error. The zero value hides nothing yet. Its methods may be called from several goroutines.
type Veil struct {
	mu sync.Mutex
	// lasting are those of the row, passing are tokens, which come and go.
	lasting, passing []string
}

const (
	// A shorter text may be a word of the server's own.
	minSecret = 6
	// maxLasting and maxPassing are how many are known at a time.
	maxLasting = 500
	maxPassing = 20
)

// NotePairs hides those of a member's pairs, env or header, that a row refers to, and those that are secrets by their names.
func (v *Veil) NotePairs(r Row, member string, pairs []config.Pair) {
	named := map[string]string{}
	for _, p := range pairs {
		named[p.Name] = p.Value
	}
	row, err := json.Marshal(map[string]any{map[string]string{"env": "env", "header": "headers"}[member]: named})
	if err != nil {
		return
	}
	secret := config.PlainSecrets(row)
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range pairs {
		if name := member + " " + p.Name; r.Parts(name) != nil || slices.Contains(secret, name) {
			v.lasting = noted(v.lasting, p.Value, maxLasting)
		}
	}
}

// Note hides a token.
func (v *Veil) Note(token string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.passing = noted(v.passing, token, maxPassing)
}

// noted adds a value to a list, of which the oldest go: each line of it, and what follows the name of a scheme such as Bearer.
func noted(list []string, value string, most int) []string {
	for line := range strings.Lines(value) {
		line = strings.TrimSpace(line)
		if scheme, rest, ok := strings.Cut(line, " "); ok && slices.Contains([]string{"bearer", "basic", "token"}, strings.ToLower(scheme)) {
			line = strings.TrimSpace(rest)
		}
		if len(line) >= minSecret && !slices.Contains(list, line) {
			list = append(list, line)
		}
	}
	return slices.Delete(list, 0, max(0, len(list)-most))
}

// Over gives a text without the secrets.
func (v *Veil) Over(text string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var in []string
	for _, s := range slices.Concat(v.lasting, v.passing) {
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

// OverError gives an error that says the same without the secrets, and wraps the other.
func (v *Veil) OverError(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if shown := v.Over(text); shown != text {
		return veiled{err, shown}
	}
	return err
}

type veiled struct {
	err   error
	shown string
}

func (e veiled) Error() string { return e.shown }
func (e veiled) Unwrap() error { return e.err }

// A Signer hands out tokens, as that of a connection over HTTP does.
type Signer interface {
	// Token gives the token to send.
	Token(ctx context.Context) (string, error)
	// Refused gives another one than that which was refused.
	Refused(ctx context.Context, used string, status int, header http.Header, body []byte) (another string, err error)
}

// Signer gives a Signer that hands out the same tokens, which are hidden from then on.
func (v *Veil) Signer(s Signer) Signer { return noting{s, v} }

type noting struct {
	Signer
	veil *Veil
}

func (n noting) Token(ctx context.Context) (string, error) {
	token, err := n.Signer.Token(ctx)
	n.veil.Note(token)
	return token, err
}

func (n noting) Refused(ctx context.Context, used string, status int, header http.Header, body []byte) (another string, err error) {
	another, err = n.Signer.Refused(ctx, used, status, header, body)
	n.veil.Note(another)
	return another, err
}
