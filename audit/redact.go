package audit

import (
	"crypto/sha256"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge"
)

// A Mode says how much of a call's arguments is kept.
type Mode string

// The modes. The empty Mode is Redacted.
const (
	// Redacted keeps them without what looks like a secret, and long texts cut.
	Redacted Mode = "redacted"
	// Hash keeps their SHA-256 only.
	Hash Mode = "hash"
	// Full keeps them as they were sent.
	Full Mode = "full"
)

// Bounds of what Redacted keeps.
const (
	// DefaultMaxString is how many bytes of a text are kept where nobody says otherwise.
	DefaultMaxString = 1024
	// maxArguments is how many bytes arguments may come to, maxDepth how deep they may nest.
	maxArguments = 16 << 10
	maxDepth     = 32
	// beyond is how far after its cut a text is looked at: a secret may begin before it.
	beyond = 8 << 10
)

// Rules say what of a call may be kept. The zero value is Redacted.
type Rules struct {
	Arguments Mode
	// MaxString is how many bytes of a text in the arguments are kept; 0 is DefaultMaxString.
	MaxString int
	// Known gives values that are secrets, to be left out wherever they stand; nil knows none. It is called for each text, and
	// may be from several goroutines; what it gives is not changed.
	Known func() []string
}

// arguments writes what is kept of a call's arguments.
func (w *writer) arguments(raw json.RawMessage) {
	if len(raw) == 0 {
		return
	}
	switch w.rules.Arguments {
	case Hash:
	case Full:
		if json.Valid(raw) {
			w.name("arguments")
			w.dst = append(w.dst, raw...)
		}
	default:
		w.redacted(raw)
	}
	w.name("digest")
	w.dst = append(appendHex(append(w.dst, '"'), sha256.Sum256(raw), sha256.Size), '"')
	w.number("size", int64(len(raw)))
}

// redacted writes arguments without what looks like a secret; nothing where they are no JSON, or come to too much.
func (w *writer) redacted(raw []byte) {
	start := len(w.dst)
	w.name("arguments")
	v := veil{reader: reader{src: raw}, dst: w.dst, rules: w.rules, end: len(w.dst) + maxArguments, most: w.rules.MaxString}
	if v.most <= 0 {
		v.most = DefaultMaxString
	}
	switch ok := utf8.Valid(raw) && v.value(0) && v.space() == 0; {
	case ok:
		w.dst = v.dst
	case len(v.dst) > v.end:
		w.dst = appendQuoted(v.dst[:v.end-maxArguments], "[too much to keep]")
	default:
		w.dst = w.dst[:start]
	}
}

// A veil writes JSON without the secrets in it.
type veil struct {
	reader
	dst   []byte
	rules *Rules
	// end is how long dst may become, most how long a text.
	end, most int
}

func (v *veil) value(depth int) bool {
	if len(v.dst) > v.end {
		return false
	}
	if depth > maxDepth {
		v.dst = append(v.dst, `"[nested too deep]"`...)
		return v.skip()
	}
	switch v.space() {
	case '{':
		return v.object(depth)
	case '[':
		return v.array(depth)
	case '"':
		token, ok := v.token()
		v.string(token)
		return ok
	}
	start := v.i
	ok := v.scalar()
	word := v.src[start:v.i]
	if len(word) >= minKnown { // a secret may be a number
		if shown, changed := v.rules.withoutKnown(string(word)); changed {
			v.dst = appendQuoted(v.dst, shown)
			return ok
		}
	}
	v.dst = append(v.dst, word...)
	return ok
}

// object writes an object. The value of a name that is a secret's is hidden, and so is that of a pair whose other half is such
// a name: {"name": "API_TOKEN", "value": …}.
func (v *veil) object(depth int) bool {
	paired := v.pairOfSecret()
	v.i++
	v.dst = append(v.dst, '{')
	if v.space() == '}' {
		v.i++
		v.dst = append(v.dst, '}')
		return true
	}
	for {
		token, ok := v.token()
		if !ok || v.space() != ':' {
			return false
		}
		v.i++
		name := unquote(token)
		v.string(token)
		v.dst = append(v.dst, ':')
		if smells(name) || paired && name == "value" {
			ok = v.hidden()
		} else {
			ok = v.value(depth + 1)
		}
		if !ok {
			return false
		}
		switch v.space() {
		case ',':
			v.i++
			v.dst = append(v.dst, ',')
			v.space()
		case '}':
			v.i++
			v.dst = append(v.dst, '}')
			return true
		default:
			return false
		}
	}
}

func (v *veil) array(depth int) bool {
	v.i++
	v.dst = append(v.dst, '[')
	if v.space() == ']' {
		v.i++
		v.dst = append(v.dst, ']')
		return true
	}
	flag := false // the text before is a flag whose value is a secret: ["--token", "…"]
	for {
		ok := false
		if v.space() == '"' {
			token, whole := v.token()
			said := unquote(token)
			if flag && (said == "" || said[0] != '-') {
				v.dst = appendQuoted(v.dst, drawbridge.Redacted)
				flag = false
			} else {
				v.string(token)
				flag = len(said) > 1 && said[0] == '-' && len(said) <= 64 && !strings.Contains(said, "=") && smells(said)
			}
			ok = whole
		} else {
			ok, flag = v.value(depth+1), false
		}
		if !ok || len(v.dst) > v.end {
			return false
		}
		switch v.space() {
		case ',':
			v.i++
			v.dst = append(v.dst, ',')
		case ']':
			v.i++
			v.dst = append(v.dst, ']')
			return true
		default:
			return false
		}
	}
}

// hidden passes over a value and writes that there was one. What is true, false or null keeps no secret.
func (v *veil) hidden() bool {
	v.space()
	start := v.i
	if !v.skip() {
		return false
	}
	switch word := string(v.src[start:v.i]); word {
	case "true", "false", "null", `""`:
		v.dst = append(v.dst, word...)
	default:
		v.dst = appendQuoted(v.dst, drawbridge.Redacted)
	}
	return true
}

// string writes a text as it stands, or without its secrets, or its beginning with the digest of the whole.
func (v *veil) string(token []byte) {
	text := unquote(token)
	seen := text
	if len(text) > v.most+beyond {
		seen = text[:boundary(text, v.most+beyond)]
	}
	shown, changed := v.rules.text(seen)
	switch {
	case !changed && len(text) <= v.most && (len(token) == len(text)+2 || json.Valid(token)):
		v.dst = append(v.dst, token...)
		return
	case len(text) > v.most:
		cut := shown
		end := v.most
		if len(seen) < len(text) { // a known value may begin at its end
			end = min(end, max(0, len(cut)-v.rules.longestKnown()))
		}
		if len(cut) > end {
			cut = cut[:boundary(cut, end)]
		}
		sum := sha256.Sum256([]byte(text))
		shown = cut + "…[" + strconv.Itoa(len(text)) + " bytes, sha256 " + string(appendHex(nil, sum, 8)) + "]"
	}
	v.dst = appendQuoted(v.dst, shown)
}

// pairOfSecret looks ahead into the object at hand: whether a member that names something names a secret.
func (v *veil) pairOfSecret() bool {
	ahead := reader{src: v.src, i: v.i + 1}
	for ahead.space() == '"' {
		token, ok := ahead.token()
		if !ok || ahead.space() != ':' {
			return false
		}
		ahead.i++
		ahead.space()
		start := ahead.i
		switch unquote(token) {
		case "name", "key", "header", "field", "variable":
			if !ahead.skip() {
				return false
			}
			if said := ahead.src[start:ahead.i]; said[0] == '"' && len(said) <= 66 && smells(unquote(said)) {
				return true
			}
		default:
			if !ahead.skip() {
				return false
			}
		}
		if ahead.space() != ',' {
			return false
		}
		ahead.i++
	}
	return false
}
