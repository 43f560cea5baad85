package config

import (
	"fmt"
	"strings"
)

// A ValuePartKind says what a Part is.
type ValuePartKind string

// The kinds of parts.
const (
	// LiteralPart is text that stands as it is.
	LiteralPart ValuePartKind = ""
	// FilePart is what a file holds, KeychainPart what a person keeps under a name, CommandPart what a shell's command
	// prints.
	FilePart     ValuePartKind = "file"
	KeychainPart ValuePartKind = "keychain"
	CommandPart  ValuePartKind = "command"
)

// A ValuePart is a piece of a value that is put together when its server is mounted. What is found for one is put in
// as it is, and not looked at again.
type ValuePart struct {
	Kind ValuePartKind
	// Text is the literal text, which may be a secret; else what is referred to: a file's absolute path, a name, a
	// command.
	Text string
}

// String shows a reference as it is written; of a literal, which may be a secret, nothing.
func (p ValuePart) String() string {
	if p.Kind == LiteralPart {
		return "…"
	}
	return fmt.Sprintf("${%s:%s}", p.Kind, p.Text)
}

// A SecretRef is a secret that is put together of its parts, in order, when it is first needed. The zero value is none.
type SecretRef struct {
	Parts []ValuePart
	// Missing names variables that it needs and that are not set.
	Missing []string
}

// IsZero says whether there is no key.
func (k SecretRef) IsZero() bool { return len(k.Parts) == 0 && len(k.Missing) == 0 }

// expandReferences takes a text apart, with variables in the places of ${NAME}, ${NAME:-default} and ${env:NAME}. A
// variable that is set wins, even when it is empty. ${file:…}, ${keychain:…} and ${command:…} become parts of their
// own. A variable without a value stays as it is written, and so does a placeholder of another form, such as
// ${input:token}; missing is told what stands between its braces. What was put in is not looked at again. $${ is ${
// itself, and ${:-text} is text that means nothing further. A placeholder ends at the first closing brace. A text
// without references is one literal part, or none.
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

// parseReference reads what stands between the braces as a reference to something that is found later. ${file:-text}
// is a variable with a default.
func parseReference(inner string) (ValuePart, bool) {
	kind, text, _ := strings.Cut(inner, ":")
	switch kind := ValuePartKind(kind); kind {
	case FilePart, KeychainPart, CommandPart:
		return ValuePart{kind, text}, text != "" && text[0] != '-'
	}
	return ValuePart{}, false
}

// resolveVariable gives the value of what stands between the braces. A name holds no colon.
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

// joinLiteralParts is what parts come to where none of them is found later; else it gives the first one that is.
func joinLiteralParts(parts []ValuePart) (s string, later *ValuePart) {
	for i, p := range parts {
		if p.Kind != LiteralPart {
			return "", &parts[i]
		}
		s += p.Text
	}
	return s, nil
}
