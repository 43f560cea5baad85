package admin

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
)

// minReportWord is the minimum length in bytes of the words that a reportRedactor replaces. Shorter words occur in
// ordinary text.
const minReportWord = 4

// A reportRedactor redacts texts for a report. It replaces words that occur in the servers' configuration, in the
// settings, in secret environment variables or in the vault. It shortens the home directory to "~".
type reportRedactor struct {
	// words are the words to replace. They are sorted by length, longest first, because a word may be part of a longer
	// word.
	words []string
	home  string
	// numbers maps subjects of findings, such as `server "x"`, to texts with the number of the server in the report,
	// such as "server 1".
	numbers map[string]string
}

// newReportRedactor returns a redactor for the words in all rows of set, in its settings, in secret variables of
// environ and in the vault. vault may be nil. home is the home directory.
func newReportRedactor(set config.Configuration, environ []string, vault *secrets.Vault, home string) *reportRedactor {
	r := &reportRedactor{home: home, numbers: map[string]string{}}
	for _, row := range slices.Concat(set.Servers, set.Shadowed) {
		r.addJSON(row.Raw)
		for _, p := range slices.Concat(row.Env, row.Headers) {
			r.addText(p.Value)
		}
		r.addText(row.URL)
	}
	r.addStrings(reflect.ValueOf(set.Settings))
	for _, value := range secretVariables(environ) {
		r.addText(value)
	}
	if vault != nil {
		all, _ := vault.List() // a value that cannot be read is not in any text either
		for _, s := range all {
			if value, err := vault.Get(s.Name); err == nil {
				r.addText(string(value))
			}
		}
	}
	slices.SortFunc(r.words, func(a, b string) int { return len(b) - len(a) })
	r.words = slices.Compact(r.words)
	return r
}

// addJSON adds all strings in a JSON value to the words to replace.
func (r *reportRedactor) addJSON(raw json.RawMessage) {
	var v any
	if json.Unmarshal(raw, &v) == nil {
		r.addValue(v)
	}
}

func (r *reportRedactor) addValue(v any) {
	switch v := v.(type) {
	case string:
		r.addText(v)
	case []any:
		for _, one := range v {
			r.addValue(one)
		}
	case map[string]any:
		for _, one := range v {
			r.addValue(one)
		}
	}
}

// addStrings adds all strings in v, a value of the settings, to the words to replace.
func (r *reportRedactor) addStrings(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		r.addText(v.String())
	case reflect.Pointer:
		if !v.IsNil() {
			r.addStrings(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			r.addStrings(v.Index(i))
		}
	case reflect.Map:
		for entry := v.MapRange(); entry.Next(); {
			r.addStrings(entry.Value())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			r.addStrings(v.Field(i))
		}
	}
}

// addText adds a text, and each word in the text, to the words to replace.
func (r *reportRedactor) addText(text string) {
	separates := func(c rune) bool { return strings.ContainsRune(" \t\r\n=,;:?&@/|\"'`(){}[]<>", c) }
	for _, word := range append(strings.FieldsFunc(text, separates), text) {
		if len(word) >= minReportWord {
			r.words = append(r.words, word)
		}
	}
}

// redact returns a text of Drawbridge on one line, with words and quoted texts replaced and the home directory
// shortened to "~". It must not be used for texts of servers; see describeFault.
func (r *reportRedactor) redact(text string) string {
	for _, word := range r.words {
		text = strings.ReplaceAll(text, word, redactedText)
	}
	return safetext.Line(r.shortenHome(redactQuoted(text)))
}

// redactQuoted replaces each text between double quotes with "…". Such a text may be a name or a value from a server
// or a file.
func redactQuoted(text string) string {
	parts := strings.Split(text, `"`)
	for i := 1; i < len(parts); i += 2 {
		parts[i] = "…"
	}
	return strings.Join(parts, `"`)
}

func (r *reportRedactor) shortenHome(text string) string {
	if len(r.home) > 1 {
		text = strings.ReplaceAll(text, r.home, "~")
	}
	return text
}

// faultCauses are the phrases that describeFault returns. They are known phrases of Drawbridge, the operating system or
// the protocol, so that they reveal nothing about a server.
var faultCauses = []string{
	"timeout", "deadline exceeded", "connection refused", "connection reset", "no such host", "no such file",
	"not found", "permission denied", "unauthorized", "forbidden", "certificate", "exit code", "exit status", "exited", "ended",
	"killed by", "signal:", "broken pipe", "EOF", "invalid JSON", "not JSON", "protocol version", "too many", "too large",
	"needs a sign-in", "sign in", "cannot be started", "list tools", "list prompts", "list resources", "initialize",
	"mount", "spawn", "confine", "quarantine", "left out", "disk is full", "locked",
}

// describeFault returns the phrases of faultCauses that the text of a fault contains. The other text is omitted,
// because it may come from a server. For an empty fault it returns "".
func describeFault(fault string) string {
	if fault == "" {
		return ""
	}
	var known []string
	for _, cause := range faultCauses {
		if strings.Contains(strings.ToLower(fault), strings.ToLower(cause)) {
			known = append(known, cause)
		}
	}
	if known == nil {
		return "a fault; its text is left out"
	}
	return strings.Join(known, ", ") + "; its text is left out"
}

// describeSettings returns the settings that are set, as names and values for a report. The value of a text is "set"
// instead of the text; the value of a list is its length.
func describeSettings(s config.Settings) map[string]any {
	shown, _ := describeValue(reflect.ValueOf(s)).(map[string]any)
	return shown
}

// describeValue returns the description of one value of the settings for a report; nil for a value that is not set.
func describeValue(v reflect.Value) any {
	if v.IsZero() {
		return nil
	}
	switch v.Kind() {
	case reflect.Bool:
		return v.Bool()
	case reflect.Int, reflect.Int64, reflect.Int32:
		if d, ok := v.Interface().(time.Duration); ok {
			return d.String()
		}
		return v.Int()
	case reflect.Uint, reflect.Uint64, reflect.Uint32:
		return v.Uint()
	case reflect.Float64:
		return v.Float()
	case reflect.Slice, reflect.Map:
		return map[string]any{"entries": v.Len()}
	case reflect.Pointer:
		return describeValue(v.Elem())
	case reflect.Struct:
		members := map[string]any{}
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				if shown := describeValue(v.Field(i)); shown != nil {
					members[field.Name] = shown
				}
			}
		}
		return members
	}
	return "set"
}

// ownFindings are the beginnings of subjects of findings whose texts Drawbridge has written. Findings about other
// subjects, such as models, may have texts of other services.
var ownFindings = []string{"server ", "the file", "the store", "the hub", "clients", "private files"}

// isForeignText reports whether the text of a finding may contain text of a server or of another service. foreign are
// the faults and notes of servers, with which the text is compared.
func isForeignText(f Finding, foreign []string) bool {
	return strings.Contains(f.Text, "did not work") ||
		!slices.ContainsFunc(ownFindings, func(begin string) bool { return strings.HasPrefix(f.About, begin) }) ||
		slices.ContainsFunc(foreign, func(s string) bool {
			return s != "" && (strings.Contains(f.Text, s) || strings.Contains(s, f.Text))
		})
}
