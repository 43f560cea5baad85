// Package refer reads what texts of a configuration refer to: variables, which are put in at once, and what is only found later,
// in files, in a keychain, by commands. It finds none of these itself.
package refer

import (
	"fmt"
	"strings"
)

// A Kind says what a Part is.
type Kind string

// The kinds of parts.
const (
	// Literal is text that stands as it is.
	Literal Kind = ""
	// FromFile is what a file holds, FromKeychain what a person keeps under a name, FromCommand what a shell's command prints.
	FromFile     Kind = "file"
	FromKeychain Kind = "keychain"
	FromCommand  Kind = "command"
)

// A Part is a piece of a value that is put together when its server is mounted. What is found for one is put in as it is,
// and not looked at again.
type Part struct {
	Kind Kind
	// Text is the literal text, which may be a secret; else what is referred to: a file's absolute path, a name, a command.
	Text string
}

// String shows a reference as it is written; of a literal, which may be a secret, nothing.
func (p Part) String() string {
	if p.Kind == Literal {
		return "…"
	}
	return fmt.Sprintf("${%s:%s}", p.Kind, p.Text)
}

// A Key is a secret that is put together of its parts, in order, when it is first needed. The zero value is none.
type Key struct {
	Parts []Part
	// Missing names variables that it needs and that are not set.
	Missing []string
}

// IsZero says whether there is no key.
func (k Key) IsZero() bool { return len(k.Parts) == 0 && len(k.Missing) == 0 }

// PutIn takes a text apart, with variables in the places of ${NAME}, ${NAME:-default} and ${env:NAME}. A variable that is
// set wins, even when it is empty. ${file:…}, ${keychain:…} and ${command:…} become parts of their own. A variable without
// a value stays as it is written, and so does a placeholder of another form, such as ${input:token}; missing is told what
// stands between its braces. What was put in is not looked at again. $${ is ${ itself, and ${:-text} is text that means
// nothing further. A placeholder ends at the first closing brace. A text without references is one literal part, or none.
func PutIn(s string, lookup func(string) (string, bool), missing func(string)) (parts []Part) {
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			parts = append(parts, Part{Literal, text.String()})
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
		if ref, ok := refer(inner); ok {
			flush()
			parts = append(parts, ref)
			continue
		}
		value, ok := resolve(inner, lookup)
		if !ok {
			value = "${" + inner + "}"
			missing(inner)
		}
		text.WriteString(value)
	}
}

// refer reads what stands between the braces as a reference to something that is found later. ${file:-text} is a
// variable with a default.
func refer(inner string) (Part, bool) {
	kind, text, _ := strings.Cut(inner, ":")
	switch kind := Kind(kind); kind {
	case FromFile, FromKeychain, FromCommand:
		return Part{kind, text}, text != "" && text[0] != '-'
	}
	return Part{}, false
}

// resolve gives the value of what stands between the braces. A name holds no colon.
func resolve(inner string, lookup func(string) (string, bool)) (string, bool) {
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

// AsText is what parts come to where none of them is found later; else it gives the first one that is.
func AsText(parts []Part) (s string, later *Part) {
	for i, p := range parts {
		if p.Kind != Literal {
			return "", &parts[i]
		}
		s += p.Text
	}
	return s, nil
}
