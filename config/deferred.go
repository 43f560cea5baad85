package config

import (
	"path/filepath"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A DeferredValue is a value of a row that is resolved only when the row's server is mounted. Then each part is
// resolved, and the results are joined in order.
type DeferredValue struct {
	// Name identifies the value in the row: "env TOKEN", "header Authorization", "auth client_secret".
	Name  string
	Parts []ValuePart
}

// DeferredParts returns the parts of the deferred value with the given Name, such as "env TOKEN". It returns nil if the
// value is literal.
func (s Server) DeferredParts(name string) []ValuePart {
	for _, d := range s.DeferredValues {
		if d.Name == name {
			return d.Parts
		}
	}
	return nil
}

// CommandValues returns the names of the deferred values that contain the output of a command.
func (s Server) CommandValues() (names []string) {
	for _, d := range s.DeferredValues {
		for _, p := range d.Parts {
			if p.Kind == CommandPart {
				names = append(names, safetext.Line(d.Name))
				break
			}
		}
	}
	return names
}

func (r *rowReader) expandReferences(s string) []ValuePart {
	return expandReferences(s, r.lookup, func(inner string) {
		name := configfile.PlaceholderName(strings.TrimPrefix(inner, "env:"))
		if !r.missing[name] {
			r.missing[name] = true
			r.server.Unresolved = append(r.server.Unresolved, name)
		}
	})
}

// expandVariables returns the text s of a member with its variables expanded. A reference to a file, a stored secret or
// a command is not allowed in such a member, and the row is refused. One reason is that arguments are visible to every
// process of the machine. Another reason is that the program or URL of a row must be known before the row is mounted.
func (r *rowReader) expandVariables(member, s string) string {
	text, later := joinLiteralParts(r.expandReferences(s))
	if later != nil {
		r.refuse(`%q cannot hold ${%s:…}: values of "env" and "headers", and "client_id" and "client_secret" in "auth" may`, member, later.Kind)
		return s
	}
	return text
}

// readSecret reads a value that may contain references, or that is "!" followed by a shell command. what names the
// value, such as "env TOKEN". If the value contains variables only, readSecret returns it with the variables expanded.
// Otherwise it adds the value to DeferredValues and returns the text as written. Variables in a command are not
// expanded here, because the shell expands them.
func (r *rowReader) readSecret(what, written string) string {
	command, isCommand := strings.CutPrefix(written, "!")
	parts := []ValuePart{{Kind: CommandPart, Text: command}}
	if !isCommand {
		parts = r.expandReferences(written)
		if text, later := joinLiteralParts(parts); later == nil {
			return text
		}
	}
	for i, p := range parts {
		if p.Kind == FilePart {
			parts[i].Text = r.resolvePath(p.Text)
		}
	}
	r.server.DeferredValues = append(r.server.DeferredValues, DeferredValue{what, parts})
	return written
}

// resolvePath returns the absolute path of a file. A path with "~/" starts at the home directory; another relative path
// starts at the directory of the row's file.
func (r *rowReader) resolvePath(s string) string {
	if rest, ok := strings.CutPrefix(s, "~/"); ok && r.home != "" {
		s = filepath.Join(r.home, rest)
	}
	if !filepath.IsAbs(s) {
		s = filepath.Join(filepath.Dir(r.server.Origin.Path), s)
	}
	return filepath.Clean(s)
}
