package audit

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"
)

// A recordWriter appends the members of a record to dst. Its methods expect the name of a member together with its
// punctuation, such as `,"kind":`.
type recordWriter struct {
	dst   []byte
	rules *RedactionRules
}

// appendRaw appends a text without changes. Inlining is disabled: it would make the callers three times as long, and
// long code is slow when it is not in the processor's cache.
//
//go:noinline
func (w *recordWriter) appendRaw(text string) { w.dst = append(w.dst, text...) }

// appendQuoted appends text as a JSON string on one line; invalid UTF-8 becomes U+FFFD.
func (w *recordWriter) appendQuoted(text string) {
	if plainPrefixLen(text) == len(text) {
		w.dst = append(append(append(w.dst, '"'), text...), '"')
		return
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a text always encodes
	w.dst = append(w.dst, bytes.TrimSuffix(b.Bytes(), []byte{'\n'})...)
}

// plainPrefixLen returns the length of the longest prefix of ASCII characters that need no escape in JSON.
func plainPrefixLen(s string) int {
	const ones = 0x0101010101010101
	i := 0
	for ; i+8 <= len(s); i += 8 {
		b := s[i : i+8]
		w := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		// In low, quote and slash, the first byte that needs an escape has its highest bit set. The bytes that need
		// an escape are those below ' ', '"' and '\\'. Bytes outside ASCII have this bit set in w.
		low, quote, slash := w-ones*' ', (w^ones*'"')-ones, (w^ones*'\\')-ones
		if (w|low|quote|slash)&(ones<<7) != 0 {
			break
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			break
		}
	}
	return i
}

func (w *recordWriter) appendText(name, value string) {
	if value != "" {
		w.appendRaw(name)
		w.appendQuoted(clipText(value))
	}
}

// appendRedactedText appends a text that callers or servers choose, such as a URI. Likely secrets in the text are
// removed.
func (w *recordWriter) appendRedactedText(name, value string) {
	if value != "" {
		value, _ := w.rules.redactSecrets(value)
		w.appendText(name, value)
	}
}

func (w *recordWriter) appendNumber(name string, value int64) {
	if value != 0 {
		w.appendRaw(name)
		w.dst = strconv.AppendInt(w.dst, value, 10)
	}
}

func (w *recordWriter) appendTime(name string, t time.Time) {
	w.appendRaw(name)
	w.dst = append(t.UTC().AppendFormat(append(w.dst, '"'), time.RFC3339Nano), '"')
}
