package audit

import (
	"cmp"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// minKnownSecret is the minimum length of a known secret that is removed from texts. Shorter values may be everyday
// words.
const minKnownSecret = 6

// redactSecrets returns the text without likely secrets, and reports whether it contained any. It removes known
// values, words with a well-known prefix, and passwords in URLs. It also removes values after the name of a secret:
// "password=…", "--token …", "Authorization: Bearer …".
func (r *RedactionRules) redactSecrets(s string) (string, bool) {
	s, found := r.redactKnownSecrets(s)
	if looksHarmless(s) {
		return s, found
	}
	if plain := RedactPEMKeys(s, func(int) string { return drawbridge.Redacted }); plain != s {
		s, found = plain, true
	}
	p := secretScanner{s: s}
	for p.i < len(s) {
		p.scanWord()
	}
	if !p.found {
		return s, found
	}
	p.out.WriteString(s[p.kept:])
	return p.out.String(), true
}

// redactKnownSecrets returns the text without the values of KnownSecrets, and reports whether it contained any of
// them. Values that overlap in the text are replaced together.
func (r *RedactionRules) redactKnownSecrets(s string) (string, bool) {
	if r.KnownSecrets == nil {
		return s, false
	}
	known := r.KnownSecrets()
	if len(known) == 0 {
		return s, false
	}
	var at [][2]int
	for _, value := range known {
		if len(value) < minKnownSecret {
			continue
		}
		for from := 0; ; {
			i := strings.Index(s[from:], value)
			if i < 0 {
				break
			}
			at = append(at, [2]int{from + i, from + i + len(value)})
			from += i + len(value)
		}
	}
	if len(at) == 0 {
		return s, false
	}
	slices.SortFunc(at, func(a, b [2]int) int { return cmp.Compare(a[0], b[0]) })
	var out strings.Builder
	kept := 0
	for i := 0; i < len(at); {
		from, to := at[i][0], at[i][1]
		for i++; i < len(at) && at[i][0] < to; i++ {
			to = max(to, at[i][1])
		}
		out.WriteString(s[kept:from])
		out.WriteString(drawbridge.Redacted)
		kept = to
	}
	out.WriteString(s[kept:])
	return out.String(), true
}

// longestKnownSecret returns the length of the longest known secret value.
func (r *RedactionRules) longestKnownSecret() (most int) {
	if r.KnownSecrets != nil {
		for _, value := range r.KnownSecrets() {
			most = max(most, len(value))
		}
	}
	return most
}

// looksHarmless reports whether a text contains no sign of a secret. Signs are an assignment, a word that announces a
// secret (see announcesSecret), a well-known prefix, and a webhook URL. looksHarmless does not search for known
// values. It makes redaction fast, because most names and short texts are harmless.
func looksHarmless(s string) bool {
	for i := 0; i < len(s); i++ {
		start := i
		for i < len(s) && isWordChar(s[i]) {
			i++
		}
		switch word := s[start:i]; {
		case hasSecretPrefix(word), webhookSecretStart(s, word, i) > 0:
			return false
		case i == len(s):
			return true
		case s[i] == '=' || s[i] == ':' || s[i] == ' ' && announcesSecret(word):
			return false
		}
	}
	return true
}

// announcesSecret reports whether a secret may follow the given word and a blank. Such words are command-line flags,
// authentication schemes such as Bearer, and the start of the first line of a PEM key.
func announcesSecret(word string) bool {
	return word != "" && (word[0] == '-' || isAuthScheme(word) || strings.HasSuffix(word, "-----BEGIN"))
}

// A secretScanner scans a text word by word.
type secretScanner struct {
	s      string
	i      int
	kept   int // the text up to this index is already copied or redacted to out
	out    strings.Builder
	found  bool
	quotes quoteCounts
}

// redact replaces s[from:to] with [drawbridge.Redacted].
func (p *secretScanner) redact(from, to int) {
	if to <= from || p.s[from:to] == drawbridge.Redacted {
		return
	}
	p.found = true
	p.out.WriteString(p.s[p.kept:from])
	p.out.WriteString(drawbridge.Redacted)
	p.kept = to
}

// scanWord processes one word, or one byte between words.
func (p *secretScanner) scanWord() {
	start := p.i
	p.i = p.wordEnd(start)
	if p.i == start {
		if strings.HasPrefix(p.s[p.i:], "://") {
			p.redactURLPassword()
			return
		}
		p.i++
		return
	}
	word := p.s[start:p.i]
	switch {
	case hasSecretPrefix(word):
		p.redact(start, p.i)
	case isAuthScheme(word):
		if next := p.skipBlanks(p.i); next > p.i {
			if end := p.bareValueEnd(next); end-next >= minKnownSecret && !strings.HasPrefix(p.s[next:],
				drawbridge.Redacted) {
				p.redact(next, end)
				p.i = end
			}
		}
	case webhookSecretStart(p.s, word, p.i) > 0:
		from := webhookSecretStart(p.s, word, p.i)
		p.i = p.bareValueEnd(from)
		p.redact(from, p.i)
	case len(word) <= 64:
		p.redactAssignedValue(start)
	}
}

// redactAssignedValue hides the value that is assigned to the word at start, if the word is the name of a secret. The
// value follows "=" or ":". If the word is a command-line flag, the value may also follow a blank.
func (p *secretScanner) redactAssignedValue(start int) {
	word := p.s[start:p.i]
	i, given := p.findAssignedValue(p.i)
	if !given {
		if i = p.skipBlanks(p.i); word[0] != '-' || i == p.i {
			return
		}
	}
	if !isSecretName(word) && !(given && p.isURLSignature(start, word)) {
		return
	}
	if given {
		if from, to, ok := p.yamlBlockExtent(start, i); ok {
			p.redact(from, to)
			p.i = to
			return
		}
	}
	from, to, end := p.valueExtent(start, i)
	// Authorization: Bearer …
	if scheme := p.wordEnd(from); isAuthScheme(p.s[from:scheme]) && scheme < len(p.s) && p.s[scheme] == ' ' {
		from = p.skipBlanks(scheme)
		if scheme == to {
			to = p.bareValueEnd(from)
			end = to
		}
	}
	p.redact(from, to)
	p.i = max(p.i, end)
}

// redactURLPassword hides the password before the "@" of a URL. p.i is the index of the URL's "://".
func (p *secretScanner) redactURLPassword() {
	p.i += len("://")
	rest := p.s[p.i:]
	if end := strings.IndexAny(rest, "/?# \"'<>\n"); end >= 0 {
		rest = rest[:end]
	}
	at := strings.LastIndexByte(rest, '@')
	if at < 0 {
		return
	}
	from := p.i
	if colon := strings.IndexByte(rest[:at], ':'); colon >= 0 {
		from += colon + 1
	} else if !hasSecretPrefix(rest[:at]) {
		return
	}
	p.redact(from, p.i+at)
	p.i += at
}

// skipBlanks returns the first index, starting at i, that is neither at a blank nor at a line end after a backslash.
func (p *secretScanner) skipBlanks(i int) int {
	for {
		switch {
		case i < len(p.s) && p.s[i] == ' ':
			i++
		case strings.HasPrefix(p.s[i:], "\\\n"):
			i += len("\\\n")
		default:
			return i
		}
	}
}

// wordEnd returns the end of the word that begins at i.
func (p *secretScanner) wordEnd(i int) int {
	for i < len(p.s) && isWordChar(p.s[i]) {
		i++
	}
	return i
}

// isAuthScheme reports whether a word is an HTTP authentication scheme: Bearer, Basic or Digest.
func isAuthScheme(word string) bool {
	if len(word) < len("basic") || len(word) > len("bearer") {
		return false
	}
	return strings.EqualFold(word, "bearer") || strings.EqualFold(word, "basic") || strings.EqualFold(word, "digest")
}

// minPrefixedSecret is the minimum length of a secret that is recognized by its prefix.
const minPrefixedSecret = 16

// hasSecretPrefix reports whether a word begins with a well-known prefix of secrets, and is long enough for a
// secret.
func hasSecretPrefix(word string) bool {
	if len(word) < minPrefixedSecret {
		return false
	}
	prefixes := ""
	switch word[0] {
	case 'g':
		prefixes = "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat-"
	case 'S':
		prefixes = "SG."
	case 's':
		prefixes = "sk- sk_live_ sk_test_ shpat_ sbp_"
	case 'r':
		prefixes = "rk_live_ rk_test_"
	case 'x':
		prefixes = "xoxa- xoxb- xoxp- xoxr- xoxs- xapp-"
	case 'A':
		prefixes = "AKIA ASIA AIza AGE-SECRET-KEY-"
	case 'e':
		prefixes = "eyJ"
	case 'n':
		prefixes = "npm_ ntn_"
	case 'h':
		prefixes = "hf_ hvs."
	case 'y':
		prefixes = "ya29."
	case 'd':
		prefixes = "dbr_ dop_v1_ dckr_pat_"
	case 'p':
		prefixes = "pypi-"
	case 'l':
		prefixes = "lin_api_"
	default:
		return false
	}
	for prefix := range strings.SplitSeq(prefixes, " ") {
		if strings.HasPrefix(word, prefix) {
			return true
		}
	}
	return false
}

// isWordChar reports whether c may occur in names and in secrets.
func isWordChar(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}
