package config

import (
	"path/filepath"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config/doc"
	"github.com/drawbridge-mcp/drawbridge/config/refer"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// What a value is put together of, see package refer.
type (
	Part     = refer.Part
	PartKind = refer.Kind
)

// The kinds of parts: a text as it stands, what a file holds, what a keychain has under a name, what a shell's command prints.
const (
	Literal      = refer.Literal
	FromFile     = refer.FromFile
	FromKeychain = refer.FromKeychain
	FromCommand  = refer.FromCommand
)

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
				names = append(names, safetext.Line(d.Name))
				break
			}
		}
	}
	return names
}

func (r *rowReader) putIn(s string) []Part {
	return refer.PutIn(s, r.lookup, func(inner string) {
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
	text, later := refer.AsText(r.putIn(s))
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
	parts := []Part{{Kind: FromCommand, Text: command}}
	if !isCommand {
		parts = r.putIn(written)
		if text, later := refer.AsText(parts); later == nil {
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
