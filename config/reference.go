package config

import (
	"fmt"
	"strings"
)

// A ValuePartKind is the kind of a ValuePart.
type ValuePartKind string

// The kinds of a ValuePart.
const (
	// LiteralPart is literal text.
	LiteralPart ValuePartKind = ""
	// FilePart is the content of a file. KeychainPart is a stored secret. CommandPart is the output of a shell command.
	FilePart     ValuePartKind = "file"
	KeychainPart ValuePartKind = "keychain"
	CommandPart  ValuePartKind = "command"
)

// A ValuePart is one part of a value that is not resolved when the configuration is read, but when the value is needed.
// The text of a resolved part is used unchanged; references in it are not expanded.
type ValuePart struct {
	Kind ValuePartKind
	// Text is the text of a LiteralPart, which may be a secret. For other kinds it is the target of the reference: the
	// absolute path of a file, the name of a secret, or a command.
	Text string
}

// String returns the part as a reference, such as "${file:/run/token}". For a LiteralPart it returns "…", because the
// text may be a secret.
func (p ValuePart) String() string {
	if p.Kind == LiteralPart {
		return "…"
	}
	return fmt.Sprintf("${%s:%s}", p.Kind, p.Text)
}

// A SecretRef is a secret that is resolved when it is first needed: its parts are resolved and joined in order. The
// zero value means no secret.
type SecretRef struct {
	Parts []ValuePart
	// Missing names the unset variables in the secret's text.
	Missing []string
}

// IsZero reports whether no secret is configured.
func (k SecretRef) IsZero() bool { return len(k.Parts) == 0 && len(k.Missing) == 0 }

// expandReferences splits a text into parts and expands variables:
//
//	${NAME}, ${env:NAME}      the value of the variable NAME
//	${NAME:-default}          the same, or the default if the variable is not set
//	${:-text}                 the literal text
//	$${                       the two characters "${"
//	${file:…}, ${keychain:…}  a separate part
//	${command:…}              a separate part
//
// A variable that is set to an empty value counts as set. An unset variable remains as written, and so does another
// form of placeholder, such as ${input:token}; expandReferences calls missing with the text between the braces.
// Inserted text is not expanded again. A placeholder ends at the first closing brace. A text without references becomes
// one literal part; an empty text becomes no part.
func expandReferences(s string, lookup func(string) (string, bool), missing func(string)) (parts []ValuePart) {
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			parts = append(parts, ValuePart{LiteralPart, text.String()})
			text.Reset()
		}
	}
	for {
		before, rest, found := strings.Cut(s, "${")
		if plain, escaped := strings.CutSuffix(before, "$"); found && escaped {
			text.WriteString(plain + "${")
			s = rest
			continue
		}
		inner, after, closed := strings.Cut(rest, "}")
		if !found || !closed {
			text.WriteString(s)
			flush()
			return parts
		}
		text.WriteString(before)
		s = after
		if ref, ok := parseReference(inner); ok {
			flush()
			parts = append(parts, ref)
			continue
		}
		value, ok := resolveVariable(inner, lookup)
		if !ok {
			value = "${" + inner + "}"
			missing(inner)
		}
		text.WriteString(value)
	}
}

// parseReference parses the text between the braces of a placeholder as a reference to a file, a stored secret or a
// command. The second result is false for other text. ${file:-text} is not such a reference, but a variable with a
// default.
func parseReference(inner string) (ValuePart, bool) {
	kind, text, _ := strings.Cut(inner, ":")
	switch kind := ValuePartKind(kind); kind {
	case FilePart, KeychainPart, CommandPart:
		return ValuePart{kind, text}, text != "" && text[0] != '-'
	}
	return ValuePart{}, false
}

// resolveVariable returns the value of the variable that the text between the braces of a placeholder names. If the
// variable is not set, it returns the default in the text; without a default, the second result is false. A name must
// not contain a colon.
func resolveVariable(inner string, lookup func(string) (string, bool)) (string, bool) {
	name, def, hasDefault := strings.Cut(inner, ":-")
	if name == "" {
		return def, hasDefault
	}
	name = strings.TrimPrefix(name, "env:")
	if name == "" || strings.Contains(name, ":") {
		return "", false
	}
	if value, ok := lookup(name); ok {
		return value, true
	}
	return def, hasDefault
}

// joinLiteralParts returns the joined texts of literal parts. If one of the parts is a reference, it returns this part
// as later, and no text.
func joinLiteralParts(parts []ValuePart) (s string, later *ValuePart) {
	for i, p := range parts {
		if p.Kind != LiteralPart {
			return "", &parts[i]
		}
		s += p.Text
	}
	return s, nil
}
