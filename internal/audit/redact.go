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

// An ArgumentMode determines which form of a call's arguments is recorded.
type ArgumentMode string

// The modes. The empty mode means KeepRedacted.
const (
	// KeepRedacted records the arguments without likely secrets, and with long texts cut.
	KeepRedacted ArgumentMode = "redacted"
	// KeepHash records only the SHA-256 of the arguments.
	KeepHash ArgumentMode = "hash"
	// KeepFull records the arguments as the caller sent them.
	KeepFull ArgumentMode = "full"
)

// Limits of KeepRedacted.
const (
	// DefaultMaxString is the default maximum length of a text in bytes.
	DefaultMaxString = 1024
	// maxArguments is the maximum length of all arguments in bytes, and maxDepth their maximum nesting.
	maxArguments = 16 << 10
	maxDepth     = 32
	// scanBeyondCut is the number of bytes that are scanned for secrets after the place where a text is cut. A
	// secret may begin before that place and end after it.
	scanBeyondCut = 8 << 10
)

// RedactionRules determine which data of a call is recorded. The zero value means KeepRedacted.
type RedactionRules struct {
	Arguments ArgumentMode
	// MaxString is the maximum length in bytes of a text in the arguments; 0 means DefaultMaxString.
	MaxString int
	// KnownSecrets returns secret values, which are removed from every text; nil means that no values are known. It
	// is called for each text, by several goroutines concurrently. Callers do not change the returned slice.
	KnownSecrets func() []string
}

// appendArguments appends the arguments of a call in the form of the mode, and then their SHA-256 and their size.
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

// Redact returns the arguments without likely secrets, in the form of KeepRedacted. It returns nil for invalid JSON.
func (r *RedactionRules) Redact(arguments json.RawMessage) json.RawMessage {
	w := recordWriter{rules: r}
	if w.appendRedactedArgs(arguments); len(w.dst) == 0 {
		return nil
	}
	return w.dst[len(argumentsPrefix):]
}

// RedactText returns the text without likely secrets.
func (r *RedactionRules) RedactText(text string) string {
	text, _ = r.redactSecrets(text)
	return text
}

// argumentsPrefix is the text before the arguments in a record.
const argumentsPrefix = `,"arguments":`

// appendRedactedArgs appends the arguments without likely secrets. If the arguments are invalid JSON, it appends
// nothing. If they are too large, it appends a note instead of the arguments.
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

// A redactingWriter copies JSON from src to dst. It replaces secrets, and omits white space.
type redactingWriter struct {
	recordWriter
	jsonReader
	// src[from:i] is read, and not copied to dst yet.
	from int
	// maxLen is the maximum length of dst, and maxText the maximum length of a text.
	maxLen, maxText int
}

// pendingLen returns the length that dst has after the pending bytes of src are copied.
func (v *redactingWriter) pendingLen() int { return len(v.dst) + v.i - v.from }

// flush copies src[from:to] to dst. Afterwards it sets from to i, so the bytes src[to:i] are omitted.
func (v *redactingWriter) flush(to int) {
	v.appendRaw(v.src[v.from:to])
	v.from = v.i
}

// dropBlanks skips white space without copying it. It returns the next byte, or 0 at the end.
func (v *redactingWriter) dropBlanks() byte {
	before := v.i
	c := v.skipBlanks()
	if v.i > before {
		v.flush(before)
	}
	return c
}

// replaceFrom appends the text as a JSON string in place of src[start:i].
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

// redactObject copies an object. It hides the value of each member whose name is the name of a secret. In a pair such
// as {"name": "API_TOKEN", "value": …} it hides the member "value" if another member contains the name of a secret.
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
	flag := false // the previous element is a flag whose value is a secret: ["--token", "…"]
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

// hideValue replaces a value with [drawbridge.Redacted]. It does not replace true, false, null and the empty string.
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

// redactString processes the string that ends at i. token is the string as written, and text is the decoded string. A
// string without secrets is copied unchanged; otherwise the secrets are replaced. A string that is too long is cut,
// and its original length and digest are appended.
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
		if len(seen) < len(text) { // a known secret may begin at the end of seen
			end = min(end, max(0, len(cut)-v.rules.longestKnownSecret()))
		}
		cut = safetext.Truncate(cut, end, safetext.Bytes, "")
		sum := sha256.Sum256([]byte(text))
		shown = cut + "…[" + strconv.Itoa(len(text)) + " bytes, sha256 " + hex.EncodeToString(sum[:8]) + "]"
	}
	v.replaceFrom(v.i-len(token), shown)
}

// A secretPair determines whether the member "value" of an object is a secret.
type secretPair struct {
	// ahead is a reader at the beginning of the object, until the object is searched.
	ahead           jsonReader
	checked, secret bool
}

// isSecret reports whether another member of the object contains the name of a secret. It searches the object only
// once.
func (p *secretPair) isSecret() bool {
	if !p.checked {
		p.checked, p.secret = true, p.ahead.hasSecretName()
	}
	return p.secret
}

// hasSecretName reports whether the object at r describes a secret. That is the case if a member "name", "key",
// "header", "field" or "variable" contains the name of a secret.
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
