package values

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge/config"
)

// A Veil hides what a server was given and nobody else is to see where the server says it again: on standard error, in an
// error. The zero value hides nothing yet. Its methods may be called from several goroutines.
type Veil struct {
	mu      sync.Mutex
	secrets []string
}

// Redacted stands where a secret stood.
const Redacted = "[redacted]"

const (
	// A shorter text may be a word of the server's own.
	minSecret = 6
	// maxSecrets is how many are known at a time: tokens come and go.
	maxSecrets = 100
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
	for _, p := range pairs {
		if name := member + " " + p.Name; r.Parts(name) != nil || slices.Contains(secret, name) {
			v.Note(p.Value)
		}
	}
}

// Note hides a value: each line of it, and what follows the name of a scheme such as Bearer.
func (v *Veil) Note(value string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for line := range strings.Lines(value) {
		line = strings.TrimSpace(line)
		if scheme, rest, ok := strings.Cut(line, " "); ok && slices.Contains([]string{"bearer", "basic", "token"}, strings.ToLower(scheme)) {
			line = strings.TrimSpace(rest)
		}
		if len(line) < minSecret || slices.Contains(v.secrets, line) {
			continue
		}
		v.secrets = append(v.secrets, line)
	}
	if over := len(v.secrets) - maxSecrets; over > 0 {
		v.secrets = slices.Delete(v.secrets, 0, over)
	}
}

// Over gives a text without the secrets.
func (v *Veil) Over(text string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !slices.ContainsFunc(v.secrets, func(s string) bool { return strings.Contains(text, s) }) {
		return text
	}
	// The longest first: none is left over when another that is a part of it was hidden.
	for _, s := range slices.SortedFunc(slices.Values(v.secrets), func(a, b string) int { return len(b) - len(a) }) {
		text = strings.ReplaceAll(text, s, Redacted)
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
