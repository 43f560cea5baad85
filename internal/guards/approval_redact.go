package guards

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// redactSecrets returns the JSON with likely secrets replaced. It detects secrets by the names of their members and by
// well-known prefixes. A replacement contains the length of the secret, so that a person sees that a value was removed.
func redactSecrets(value json.RawMessage) json.RawMessage {
	if len(value) == 0 {
		return value
	}
	switch value[0] {
	case '{':
		return rawjson.MapValues(value, func(m rawjson.Member) json.RawMessage {
			if name, _ := rawjson.DecodeString(m.Name); isSecretName(name) {
				return redactValue(m.Value)
			}
			return redactSecrets(m.Value)
		})
	case '[':
		out := json.RawMessage{'['}
		for element := range rawjson.Elements(value) {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(out, redactSecrets(element)...)
		}
		return append(out, ']')
	case '"':
		text, _ := rawjson.DecodeString(value)
		if shown := redactText(text); shown != text {
			return rawjson.Quote(shown)
		}
	}
	return value
}

// redactValue replaces a value by a text that contains its length. Values that cannot be secrets, such as true, are
// returned unchanged.
func redactValue(value json.RawMessage) json.RawMessage {
	switch string(value) {
	case "true", "false", "null", `""`, "{}", "[]":
		return value
	}
	return rawjson.Quote(redactionNote(len(value)))
}

func redactionNote(n int) string { return fmt.Sprintf("[redacted, %d bytes]", n) }

// isSecretName reports whether a member name means a secret, in any spelling: api_key, apiKey, API-KEY.
func isSecretName(name string) bool {
	plain := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
	for _, word := range []string{"password", "passwd", "passphrase", "secret", "apikey", "accesskey", "privatekey",
		"credential", "authorization", "cookie", "bearer"} {
		if strings.Contains(plain, word) {
			return true
		}
	}
	return strings.HasSuffix(plain, "token")
}

// redactText replaces words that begin like well-known secrets, and the content of private keys. All other text remains
// visible. Otherwise a caller could hide from the person what the call does.
func redactText(text string) string {
	text = audit.RedactPEMKeys(text, redactionNote)
	var b strings.Builder
	for from := 0; from < len(text); {
		end := from
		for end < len(text) && isTokenByte(text[end]) {
			end++
		}
		if word := text[from:end]; isSecretToken(word) {
			b.WriteString(redactionNote(len(word)))
		} else {
			b.WriteString(word)
		}
		for from = end; from < len(text) && !isTokenByte(text[from]); from++ {
			b.WriteByte(text[from])
		}
	}
	return b.String()
}

func isTokenByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.'
}

func isSecretToken(word string) bool {
	if len(word) < 20 {
		return false
	}
	for _, begin := range []string{"sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xoxb-",
		"xoxp-", "xapp-", "AKIA", "ASIA", "AIza", "npm_", "pypi-", "dbr_"} {
		if strings.HasPrefix(word, begin) {
			return true
		}
	}
	return strings.HasPrefix(word, "eyJ") && strings.Count(word, ".") >= 2 // a JWT
}
