package config

import (
	"fmt"
	"strings"
)

// A ValuePartKind is the kind of a ValuePart.
type ValuePartKind string

// The kinds of parts.
const (
	// LiteralPart is literal text.
	LiteralPart ValuePartKind = ""
	// FilePart is the content of a file, KeychainPart a stored secret, CommandPart the output of a shell command.
	FilePart     ValuePartKind = "file"
	KeychainPart ValuePartKind = "keychain"
	CommandPart  ValuePartKind = "command"
)

// A ValuePart is a part of a value that is resolved when its server is mounted. The resolved text is inserted unchanged
// and not expanded again.
type ValuePart struct {
	Kind ValuePartKind
	// Text is the literal text, which may be a secret; else the target of the reference: a file's absolute path, a
	// name, a command.
	Text string
}

// String returns a reference as written, and "" for a literal, which may be a secret.
func (p ValuePart) String() string {
	if p.Kind == LiteralPart {
		return "…"
	}
	return fmt.Sprintf("${%s:%s}", p.Kind, p.Text)
}

// A SecretRef is a secret that is joined from its parts, in order, when it is first needed. The zero value means no secret.
type SecretRef struct {
	Parts []ValuePart
	// Missing names the unset variables in it.
	Missing []string
}

// IsZero reports whether the secret is empty.
func (k SecretRef) IsZero() bool { return len(k.Parts) == 0 && len(k.Missing) == 0 }

// expandReferences splits a text into parts and expands ${NAME}, ${NAME:-default} and ${env:NAME}. A variable that is
// set wins, even if it is empty. ${file:…}, ${keychain:…} and ${command:…} become separate parts. An unset variable
// stays as written, and so does a placeholder of another form, such as ${input:token}; missing gets the text between
// its braces. Inserted text is not expanded again. $${ stands for ${, and ${:-text} for the literal text. A placeholder
// ends at the first closing brace. A text without references is one literal part, or none.
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

// parseReference parses the text between the braces as a reference that is resolved later. ${file:-text} is a variable
// with a default.
func parseReference(inner string) (ValuePart, bool) {
	kind, text, _ := strings.Cut(inner, ":")
	switch kind := ValuePartKind(kind); kind {
	case FilePart, KeychainPart, CommandPart:
		return ValuePart{kind, text}, text != "" && text[0] != '-'
	}
	return ValuePart{}, false
}

// resolveVariable returns the value of the variable between the braces. A name contains no colon.
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

// joinLiteralParts joins literal parts; if one part must be resolved later, it returns that part.
func joinLiteralParts(parts []ValuePart) (s string, later *ValuePart) {
	for i, p := range parts {
		if p.Kind != LiteralPart {
			return "", &parts[i]
		}
		s += p.Text
	}
	return s, nil
}
