package config

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config/doc"
)

// A PartKind says what a Part is.
type PartKind string

// The kinds of parts.
const (
	// Literal is text that stands as it is.
	Literal PartKind = ""
	// FromFile is what a file holds, FromKeychain what a person keeps under a name, FromCommand what a shell's command prints.
	FromFile     PartKind = "file"
	FromKeychain PartKind = "keychain"
	FromCommand  PartKind = "command"
)

// A Part is a piece of a value that is put together when its server is mounted. What is found for one is put in as it is,
// and not looked at again.
type Part struct {
	Kind PartKind
	// Text is the literal text, which may be a secret; else what is referred to: a file's absolute path, a name, a command.
	Text string
}

// A Deferred is a value that is put together, of its parts in order, when its server is mounted and not before.
type Deferred struct {
	// Name is whose value it is: "env TOKEN", "header Authorization", "auth client_secret".
	Name  string
	Parts []Part
}

// Parts gives what a value is put together of: a Deferred's Name, such as "env TOKEN". It gives nil for a value that is
// what it is.
func (s Server) Parts(name string) []Part {
	for _, d := range s.Deferred {
		if d.Name == name {
			return d.Parts
		}
	}
	return nil
}

// Commands names the values that commands have a part in, as Deferred names them.
func (s Server) Commands() (names []string) {
	for _, d := range s.Deferred {
		for _, p := range d.Parts {
			if p.Kind == FromCommand {
				names = append(names, doc.Printable(d.Name))
				break
			}
		}
	}
	return names
}

// putIn takes a text apart, with variables in the places of ${NAME}, ${NAME:-default} and ${env:NAME}. A variable that is
// set wins, even when it is empty. ${file:…}, ${keychain:…} and ${command:…} become parts of their own. A variable without
// a value stays as it is written, and so does a placeholder of another form, such as ${input:token}; missing is told what
// stands between its braces. What was put in is not looked at again. $${ is ${ itself, and ${:-text} is text that means
// nothing further. A placeholder ends at the first closing brace. A text without references is one literal part, or none.
func putIn(s string, lookup func(string) (string, bool), missing func(string)) (parts []Part) {
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
	switch kind := PartKind(kind); kind {
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

// literal is what parts come to where none of them is found later; else it gives the first one that is.
func literal(parts []Part) (s string, later *Part) {
	for i, p := range parts {
		if p.Kind != Literal {
			return "", &parts[i]
		}
		s += p.Text
	}
	return s, nil
}

func (r *rowReader) putIn(s string) []Part {
	return putIn(s, r.lookup, func(inner string) {
		name := doc.Placeholder(strings.TrimPrefix(inner, "env:"))
		if !r.missing[name] {
			r.missing[name] = true
			r.server.Unresolved = append(r.server.Unresolved, name)
		}
	})
}

// expand puts variables into a text of a member that may hold no other reference: arguments are shown to every process of
// the machine, and where a row leads is known before it is mounted.
func (r *rowReader) expand(member, s string) string {
	text, later := literal(r.putIn(s))
	if later != nil {
		r.refuse(`%q cannot hold ${%s:…}: values of "env" and "headers", and "client_id" and "client_secret" in "auth" may`, member, later.Kind)
		return s
	}
	return text
}

// secret reads a value that may be a command as a whole, after "!", or hold references. A command stays as it is written,
// since a shell puts its variables in.
func (r *rowReader) secret(what, written string) string {
	command, isCommand := strings.CutPrefix(written, "!")
	parts := []Part{{FromCommand, command}}
	if !isCommand {
		parts = r.putIn(written)
		if text, later := literal(parts); later == nil {
			return text
		}
	}
	for i, p := range parts {
		if p.Kind == FromFile {
			parts[i].Text = r.path(p.Text)
		}
	}
	r.server.Deferred = append(r.server.Deferred, Deferred{what, parts})
	return written
}

// path is a file's: absolute, from the home with "~/", or relative to the file that has the row.
func (r *rowReader) path(s string) string {
	if rest, ok := strings.CutPrefix(s, "~/"); ok && r.home != "" {
		s = filepath.Join(r.home, rest)
	}
	if !filepath.IsAbs(s) {
		s = filepath.Join(filepath.Dir(r.server.Origin.Path), s)
	}
	return filepath.Clean(s)
}

// String shows a reference as it is written; of a literal, which may be a secret, nothing.
func (p Part) String() string {
	if p.Kind == Literal {
		return "…"
	}
	return fmt.Sprintf("${%s:%s}", p.Kind, p.Text)
}
