package asks

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/drawbridge-mcp/drawbridge/audit"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// veiled gives JSON without what looks like a secret, by the names that values have and by how well-known ones begin. Where
// something was it says so, with its length: a person sees that there is more.
func veiled(value json.RawMessage) json.RawMessage {
	if len(value) == 0 {
		return value
	}
	switch value[0] {
	case '{':
		return wire.EachValue(value, func(m wire.Member) json.RawMessage {
			if name, _ := wire.Text(m.Name); secretName(name) {
				return hidden(m.Value)
			}
			return veiled(m.Value)
		})
	case '[':
		out := json.RawMessage{'['}
		for element := range wire.Elements(value) {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(out, veiled(element)...)
		}
		return append(out, ']')
	case '"':
		text, _ := wire.Text(value)
		if shown := veiledText(text); shown != text {
			return wire.Quote(shown)
		}
	}
	return value
}

// hidden says that there was a value; one that keeps no secret stays.
func hidden(value json.RawMessage) json.RawMessage {
	switch string(value) {
	case "true", "false", "null", `""`, "{}", "[]":
		return value
	}
	return wire.Quote(note(len(value)))
}

func note(n int) string { return fmt.Sprintf("[redacted, %d bytes]", n) }

// secretName says whether a name is one of a secret, however its words are put together: api_key, apiKey, API-KEY.
func secretName(name string) bool {
	plain := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
	for _, word := range []string{"password", "passwd", "passphrase", "secret", "apikey", "accesskey", "privatekey", "credential", "authorization", "cookie", "bearer"} {
		if strings.Contains(plain, word) {
			return true
		}
	}
	return strings.HasSuffix(plain, "token")
}

// veiledText hides the words of a text that begin as well-known secrets do, and what is in private keys. All else is shown: who
// calls must not be able to hide from a person what they are asked about.
func veiledText(text string) string {
	text = audit.WithoutKeys(text, note)
	var b strings.Builder
	for from := 0; from < len(text); {
		end := from
		for end < len(text) && inToken(text[end]) {
			end++
		}
		if word := text[from:end]; secretWord(word) {
			b.WriteString(note(len(word)))
		} else {
			b.WriteString(word)
		}
		for from = end; from < len(text) && !inToken(text[from]); from++ {
			b.WriteByte(text[from])
		}
	}
	return b.String()
}

func inToken(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.'
}

func secretWord(word string) bool {
	if len(word) < 20 {
		return false
	}
	for _, begin := range []string{"sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "xapp-", "AKIA", "ASIA", "AIza", "npm_", "pypi-", "dbr_"} {
		if strings.HasPrefix(word, begin) {
			return true
		}
	}
	return strings.HasPrefix(word, "eyJ") && strings.Count(word, ".") >= 2 // a JWT
}
