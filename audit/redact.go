package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
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
			w.add(argumentsName)
			w.dst = append(w.dst, raw...)
		}
	default:
		w.redacted(raw)
	}
	w.add(`,"digest":"`)
	sum := sha256.Sum256(raw)
	w.dst = hex.AppendEncode(w.dst, sum[:])
	w.add(`"`)
	w.number(`,"size":`, int64(len(raw)))
}

// Redact gives arguments as Redacted keeps them: without what looks like a secret. It gives nothing where they are no JSON.
func (r *Rules) Redact(arguments json.RawMessage) json.RawMessage {
	w := writer{rules: r}
	if w.redacted(arguments); len(w.dst) == 0 {
		return nil
	}
	return w.dst[len(argumentsName):]
}

// RedactText gives a text without what looks like a secret.
func (r *Rules) RedactText(text string) string {
	text, _ = r.text(text)
	return text
}

// argumentsName is what arguments come after in a record.
const argumentsName = `,"arguments":`

// redacted writes arguments without what looks like a secret; nothing where they are no JSON, or come to too much.
func (w *writer) redacted(raw []byte) {
	before := len(w.dst)
	w.add(argumentsName)
	start := len(w.dst)
	v := veil{writer: *w, reader: reader{src: string(raw)}, end: start + maxArguments, most: w.rules.MaxString}
	if v.most <= 0 {
		v.most = DefaultMaxString
	}
	ok := utf8.Valid(raw) && v.value(0) && v.next() == 0
	if ok {
		v.flush(v.i)
	}
	switch w.dst = v.dst; {
	case ok:
	case v.size() > v.end:
		w.dst = w.dst[:start]
		w.quoted("[too much to keep]")
	default:
		w.dst = w.dst[:before]
	}
}

// A veil writes JSON without the secrets in it, and without blanks.
type veil struct {
	writer
	reader
	// What of src begins at from and ends at i comes next in dst, as it is.
	from int
	// end is how long dst may become, most how long a text.
	end, most int
}

// size is how long dst is with what comes next.
func (v *veil) size() int { return len(v.dst) + v.i - v.from }

// flush writes what comes next, up to there.
func (v *veil) flush(to int) {
	v.add(v.src[v.from:to])
	v.from = v.i
}

// next passes over blanks, which are not kept, and gives the next byte; 0 at the end.
func (v *veil) next() byte {
	before := v.i
	c := v.space()
	if v.i > before {
		v.flush(before)
	}
	return c
}

// instead writes a text in the place of what begins at start and ends at i.
func (v *veil) instead(start int, text string) {
	v.flush(start)
	v.quoted(text)
}

func (v *veil) value(depth int) bool {
	if v.size() > v.end {
		return false
	}
	c := v.next()
	start := v.i
	if depth > maxDepth {
		ok := v.skip()
		v.instead(start, "[nested too deep]")
		return ok
	}
	switch c {
	case '{':
		return v.object(depth)
	case '[':
		return v.array(depth)
	case '"':
		token, ok := v.token()
		if ok {
			v.string(token, unquote(token))
		}
		return ok
	}
	ok := v.scalar()
	if word := v.src[start:v.i]; len(word) >= minKnown { // a secret may be a number
		if shown, changed := v.rules.withoutKnown(word); changed {
			v.instead(start, shown)
		}
	}
	return ok
}

// object writes an object. The value of a name that is a secret's is hidden, and so is that of a pair whose other half is such
// a name: {"name": "API_TOKEN", "value": …}.
func (v *veil) object(depth int) bool {
	half := pair{ahead: v.reader}
	v.i++
	if v.next() == '}' {
		v.i++
		return true
	}
	for {
		token, ok := v.token()
		if !ok {
			return false
		}
		name := unquote(token)
		v.string(token, name)
		if v.next() != ':' {
			return false
		}
		v.i++
		if smells(name) || name == "value" && half.ofSecret() {
			ok = v.hidden()
		} else {
			ok = v.value(depth + 1)
		}
		if !ok {
			return false
		}
		switch v.next() {
		case ',':
			v.i++
			v.next()
		case '}':
			v.i++
			return true
		default:
			return false
		}
	}
}

func (v *veil) array(depth int) bool {
	v.i++
	if v.next() == ']' {
		v.i++
		return true
	}
	flag := false // the text before is a flag whose value is a secret: ["--token", "…"]
	for {
		ok := false
		if v.next() == '"' {
			var token string
			if token, ok = v.token(); !ok {
				return false
			}
			said := unquote(token)
			if flag && (said == "" || said[0] != '-') {
				v.instead(v.i-len(token), drawbridge.Redacted)
				flag = false
			} else {
				v.string(token, said)
				flag = len(said) > 1 && said[0] == '-' && len(said) <= 64 && !strings.Contains(said, "=") && smells(said)
			}
		} else {
			ok, flag = v.value(depth+1), false
		}
		if !ok || v.size() > v.end {
			return false
		}
		switch v.next() {
		case ',':
			v.i++
		case ']':
			v.i++
			return true
		default:
			return false
		}
	}
}

// hidden passes over a value and writes that there was one. What is true, false or null keeps no secret.
func (v *veil) hidden() bool {
	v.next()
	start := v.i
	if !v.skip() {
		v.i = start
		return false
	}
	switch v.src[start:v.i] {
	case "true", "false", "null", `""`:
	default:
		v.instead(start, drawbridge.Redacted)
	}
	return true
}

// string writes what the token says that ends at i: the text as it stands, or without its secrets, or its beginning with the digest of
// the whole.
func (v *veil) string(token, text string) {
	seen := text
	if len(text) > v.most+beyond {
		seen = safetext.Truncate(text, v.most+beyond, safetext.Bytes, "")
	}
	shown, changed := v.rules.text(seen)
	switch {
	case !changed && len(text) <= v.most && (len(token) == len(text)+2 || json.Valid([]byte(token))):
		return
	case len(text) > v.most:
		cut := shown
		end := v.most
		if len(seen) < len(text) { // a known value may begin at its end
			end = min(end, max(0, len(cut)-v.rules.longestKnown()))
		}
		cut = safetext.Truncate(cut, end, safetext.Bytes, "")
		sum := sha256.Sum256([]byte(text))
		shown = cut + "…[" + strconv.Itoa(len(text)) + " bytes, sha256 " + hex.EncodeToString(sum[:8]) + "]"
	}
	v.instead(v.i-len(token), shown)
}

// A pair is what is to be known of an object that has a "value": whether what it belongs to is a secret.
type pair struct {
	// ahead is at the object's beginning until that was looked for.
	ahead          reader
	looked, secret bool
}

// ofSecret looks ahead into the object, once: whether a member that names something names a secret.
func (p *pair) ofSecret() bool {
	if !p.looked {
		p.looked, p.secret = true, p.ahead.namesSecret()
	}
	return p.secret
}

// namesSecret says whether a member of the object that r stands at names something, and that is a secret.
func (r *reader) namesSecret() bool {
	r.i++
	for r.space() == '"' {
		token, ok := r.token()
		if !ok || r.space() != ':' {
			return false
		}
		r.i++
		r.space()
		start := r.i
		switch unquote(token) {
		case "name", "key", "header", "field", "variable":
			if !r.skip() {
				return false
			}
			if said := r.src[start:r.i]; said[0] == '"' && len(said) <= 66 && smells(unquote(said)) {
				return true
			}
		default:
			if !r.skip() {
				return false
			}
		}
		if r.space() != ',' {
			return false
		}
		r.i++
	}
	return false
}
