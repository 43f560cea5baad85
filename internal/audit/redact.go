package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// An ArgumentMode says how much of a call's arguments is kept.
type ArgumentMode string

// The modes. The empty Mode is Redacted.
const (
	// KeepRedacted keeps them without what looks like a secret, and long texts cut.
	KeepRedacted ArgumentMode = "redacted"
	// KeepHash keeps their SHA-256 only.
	KeepHash ArgumentMode = "hash"
	// KeepFull keeps them as they were sent.
	KeepFull ArgumentMode = "full"
)

// Bounds of what Redacted keeps.
const (
	// DefaultMaxString is how many bytes of a text are kept by default.
	DefaultMaxString = 1024
	// maxArguments is how many bytes arguments may come to, maxDepth how deep they may nest.
	maxArguments = 16 << 10
	maxDepth     = 32
	// scanBeyondCut is how far after its cut a text is looked at: a secret may begin before it.
	scanBeyondCut = 8 << 10
)

// RedactionRules say what of a call may be kept. The zero value is Redacted.
type RedactionRules struct {
	Arguments ArgumentMode
	// MaxString is how many bytes of a text in the arguments are kept; 0 is DefaultMaxString.
	MaxString int
	// KnownSecrets returns values that are secrets, to be left out wherever they stand; nil knows none. It is called
	// for each text, and may be from several goroutines; what it gives is not changed.
	KnownSecrets func() []string
}

// appendArguments writes what is kept of a call's arguments.
func (w *recordWriter) appendArguments(raw json.RawMessage) {
	if len(raw) == 0 {
		return
	}
	switch w.rules.Arguments {
	case KeepHash:
	case KeepFull:
		if rawjson.Valid(raw) == nil {
			w.appendRaw(argumentsPrefix)
			w.dst = append(w.dst, raw...)
		}
	default:
		w.appendRedactedArgs(raw)
	}
	w.appendRaw(`,"digest":"`)
	sum := sha256.Sum256(raw)
	w.dst = hex.AppendEncode(w.dst, sum[:])
	w.appendRaw(`"`)
	w.appendNumber(`,"size":`, int64(len(raw)))
}

// Redact returns arguments as Redacted keeps them: without what looks like a secret. It gives nothing where they are no
// JSON.
func (r *RedactionRules) Redact(arguments json.RawMessage) json.RawMessage {
	w := recordWriter{rules: r}
	if w.appendRedactedArgs(arguments); len(w.dst) == 0 {
		return nil
	}
	return w.dst[len(argumentsPrefix):]
}

// RedactText returns a text without what looks like a secret.
func (r *RedactionRules) RedactText(text string) string {
	text, _ = r.redactSecrets(text)
	return text
}

// argumentsPrefix is what arguments come after in a record.
const argumentsPrefix = `,"arguments":`

// appendRedactedArgs writes arguments without what looks like a secret; nothing where they are not JSON, or come to too
// much.
func (w *recordWriter) appendRedactedArgs(raw []byte) {
	before := len(w.dst)
	w.appendRaw(argumentsPrefix)
	start := len(w.dst)
	r, ok := newJSONReader(raw)
	v := redactingWriter{recordWriter: *w, jsonReader: r, maxLen: start + maxArguments, maxText: w.rules.MaxString}
	if v.maxText <= 0 {
		v.maxText = DefaultMaxString
	}
	if ok = ok && v.redactValue(0) && v.dropBlanks() == 0; ok {
		v.flush(v.i)
	}
	switch w.dst = v.dst; {
	case ok:
	case v.pendingLen() > v.maxLen:
		w.dst = w.dst[:start]
		w.appendQuoted("[too much to keep]")
	default:
		w.dst = w.dst[:before]
	}
}

// A redactingWriter writes JSON without the secrets in it, and without blanks.
type redactingWriter struct {
	recordWriter
	jsonReader
	// What of src begins at from and ends at i comes next in dst, as it is.
	from int
	// maxLen is how long dst may become, most how long a text.
	maxLen, maxText int
}

// pendingLen is how long dst is with what comes next.
func (v *redactingWriter) pendingLen() int { return len(v.dst) + v.i - v.from }

// flush writes what comes next, up to there.
func (v *redactingWriter) flush(to int) {
	v.appendRaw(v.src[v.from:to])
	v.from = v.i
}

// dropBlanks passes over blanks, which are not kept, and gives the next byte; 0 at the end.
func (v *redactingWriter) dropBlanks() byte {
	before := v.i
	c := v.skipBlanks()
	if v.i > before {
		v.flush(before)
	}
	return c
}

// replaceFrom writes a text in the place of what begins at start and ends at i.
func (v *redactingWriter) replaceFrom(start int, text string) {
	v.flush(start)
	v.appendQuoted(text)
}

func (v *redactingWriter) redactValue(depth int) bool {
	if v.pendingLen() > v.maxLen {
		return false
	}
	c := v.dropBlanks()
	start := v.i
	if depth > maxDepth {
		ok := v.skipValue()
		v.replaceFrom(start, "[nested too deep]")
		return ok
	}
	switch c {
	case '{':
		return v.redactObject(depth)
	case '[':
		return v.redactArray(depth)
	case '"':
		token, ok := v.readString()
		if ok {
			v.redactString(token, unquoteToken(token))
		}
		return ok
	}
	ok := v.readScalar()
	if word := v.src[start:v.i]; len(word) >= minKnownSecret { // a secret may be a number
		if shown, changed := v.rules.redactKnownSecrets(word); changed {
			v.replaceFrom(start, shown)
		}
	}
	return ok
}

// redactObject writes an object. The value of a name that is a secret's is hidden, and so is that of a pair whose
// other half is such a name: {"name": "API_TOKEN", "value": …}.
func (v *redactingWriter) redactObject(depth int) bool {
	half := secretPair{ahead: v.jsonReader}
	v.i++
	if v.dropBlanks() == '}' {
		v.i++
		return true
	}
	for {
		token, ok := v.readString()
		if !ok {
			return false
		}
		name := unquoteToken(token)
		v.redactString(token, name)
		if v.dropBlanks() != ':' {
			return false
		}
		v.i++
		if isSecretName(name) || name == "value" && half.isSecret() {
			ok = v.hideValue()
		} else {
			ok = v.redactValue(depth + 1)
		}
		if !ok {
			return false
		}
		switch v.dropBlanks() {
		case ',':
			v.i++
			v.dropBlanks()
		case '}':
			v.i++
			return true
		default:
			return false
		}
	}
}

func (v *redactingWriter) redactArray(depth int) bool {
	v.i++
	if v.dropBlanks() == ']' {
		v.i++
		return true
	}
	flag := false // the text before is a flag whose value is a secret: ["--token", "…"]
	for {
		ok := false
		if v.dropBlanks() == '"' {
			var token string
			if token, ok = v.readString(); !ok {
				return false
			}
			said := unquoteToken(token)
			if flag && (said == "" || said[0] != '-') {
				v.replaceFrom(v.i-len(token), drawbridge.Redacted)
				flag = false
			} else {
				v.redactString(token, said)
				flag = len(said) > 1 && said[0] == '-' && len(said) <= 64 && !strings.Contains(said, "=") &&
					isSecretName(said)
			}
		} else {
			ok, flag = v.redactValue(depth+1), false
		}
		if !ok || v.pendingLen() > v.maxLen {
			return false
		}
		switch v.dropBlanks() {
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

// hideValue passes over a value and writes that there was one. What is true, false or null keeps no secret.
func (v *redactingWriter) hideValue() bool {
	v.dropBlanks()
	start := v.i
	if !v.skipValue() {
		v.i = start
		return false
	}
	switch v.src[start:v.i] {
	case "true", "false", "null", `""`:
	default:
		v.replaceFrom(start, drawbridge.Redacted)
	}
	return true
}

// redactString writes what the token says that ends at i: the text as it stands, or without its secrets, or its
// beginning with the digest of the whole.
func (v *redactingWriter) redactString(token, text string) {
	seen := text
	if len(text) > v.maxText+scanBeyondCut {
		seen = safetext.Truncate(text, v.maxText+scanBeyondCut, safetext.Bytes, "")
	}
	shown, changed := v.rules.redactSecrets(seen)
	switch {
	case !changed && len(text) <= v.maxText:
		return
	case len(text) > v.maxText:
		cut := shown
		end := v.maxText
		if len(seen) < len(text) { // a known value may begin at its end
			end = min(end, max(0, len(cut)-v.rules.longestKnownSecret()))
		}
		cut = safetext.Truncate(cut, end, safetext.Bytes, "")
		sum := sha256.Sum256([]byte(text))
		shown = cut + "…[" + strconv.Itoa(len(text)) + " bytes, sha256 " + hex.EncodeToString(sum[:8]) + "]"
	}
	v.replaceFrom(v.i-len(token), shown)
}

// A secretPair is what is to be known of an object that has a "value": whether what it belongs to is a secret.
type secretPair struct {
	// ahead is at the object's beginning until that was looked for.
	ahead           jsonReader
	checked, secret bool
}

// isSecret looks ahead into the object, once: whether a member that names something names a secret.
func (p *secretPair) isSecret() bool {
	if !p.checked {
		p.checked, p.secret = true, p.ahead.hasSecretName()
	}
	return p.secret
}

// hasSecretName reports whether a member of the object that r stands at names something, and that is a secret.
func (r *jsonReader) hasSecretName() bool {
	r.i++
	for r.skipBlanks() == '"' {
		token, ok := r.readString()
		if !ok || r.skipBlanks() != ':' {
			return false
		}
		r.i++
		r.skipBlanks()
		start := r.i
		switch unquoteToken(token) {
		case "name", "key", "header", "field", "variable":
			if !r.skipValue() {
				return false
			}
			if said := r.src[start:r.i]; said[0] == '"' && len(said) <= 66 && isSecretName(unquoteToken(said)) {
				return true
			}
		default:
			if !r.skipValue() {
				return false
			}
		}
		if r.skipBlanks() != ',' {
			return false
		}
		r.i++
	}
	return false
}
