package config

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// A valueReader reads values of settings and expands variables in them. The caller puts the setting's name before the
// text of an error, such as "must be a path, not a URL". The text contains no value.
type valueReader struct {
	// Dir is the directory at which relative paths start. Home is the directory that "~" means.
	Dir, Home string
	Lookup    func(string) (string, bool)
}

// expandText returns a text with variables expanded. An unset variable is an error, because the result would be
// incomplete. A reference to a file, a stored secret or a command is also an error.
func (r *valueReader) expandText(v configfile.Node) (string, error) {
	s, ok := v.TextValue()
	if !ok || s == "" {
		return "", mustBeError("a string that is not empty")
	}
	parts, missing := r.splitReferences(s)
	text, later := joinLiteralParts(parts)
	if later != nil {
		return "", fmt.Errorf("must not contain ${%s:…}", later.Kind)
	}
	return text, missingVariablesError(missing)
}

// missingVariablesError returns an error that names the variables that are not set; nil if there are none.
func missingVariablesError(missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("needs %s, which is not set", strings.Join(missing, ", "))
}

// splitReferences splits a text into parts, and makes the paths of files absolute. missing names the unset variables.
func (r *valueReader) splitReferences(s string) (parts []ValuePart, missing []string) {
	parts = expandReferences(s, r.Lookup, func(inner string) {
		missing = append(missing,
			configfile.PlaceholderName(inner))
	})
	for i, p := range parts {
		if p.Kind == FilePart {
			parts[i].Text = r.absolutePath(p.Text)
		}
	}
	return parts, missing
}

func (r *valueReader) absolutePath(s string) string {
	if rest, ok := strings.CutPrefix(s, "~/"); ok {
		s = filepath.Join(r.Home, rest)
	}
	if !filepath.IsAbs(s) {
		s = filepath.Join(r.Dir, s)
	}
	return filepath.Clean(s)
}

// readText reads a non-empty string.
func (r *valueReader) readText(to *string, v configfile.Node) (err error) {
	*to, err = r.expandText(v)
	return err
}

// readPath reads a path: absolute, from the home directory with "~/", or relative to the directory of the settings
// file. A URL is refused: otherwise a directory would be created whose name contains the URL's password.
func (r *valueReader) readPath(to *string, v configfile.Node) error {
	s, err := r.expandText(v)
	switch {
	case err != nil:
		return err
	case strings.Contains(s, "://"):
		return mustBeError("a path, not a URL")
	}
	*to = r.absolutePath(s)
	return nil
}

// readWebURL reads an http or https URL.
func (r *valueReader) readWebURL(to *string, v configfile.Node) error {
	s, err := r.expandText(v)
	if err != nil {
		return err
	}
	if u, err := url.Parse(s); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return mustBeError("an https:// URL")
	}
	*to = s
	return nil
}

// readDatabaseURL reads the URL of a Postgres database.
func (r *valueReader) readDatabaseURL(to *string, v configfile.Node) error {
	s, err := r.expandText(v)
	if err != nil {
		return err
	}
	*to, err = lowerScheme(s, "a postgres:// URL", "postgres", "postgresql")
	return err
}

// urlScheme matches the start of a URL (RFC 3986, 3.1).
var urlScheme = lazyregexp.New(`^[A-Za-z][A-Za-z0-9+.-]*://`)

// lowerScheme returns the URL with its scheme in lower case. The error reports a missing scheme, or a scheme that is
// not in known. It contains no part of the URL except the scheme.
func lowerScheme(s, what string, known ...string) (string, error) {
	begin := urlScheme().FindString(s)
	scheme := strings.ToLower(strings.TrimSuffix(begin, "://"))
	switch {
	case scheme == "":
		return "", mustBeError("%s", what)
	case !slices.Contains(known, scheme):
		return "", mustBeError("%s, and %q is an unknown scheme", what, scheme)
	}
	return scheme + s[len(scheme):], nil
}

// readURLParts reads a URL with one of the given schemes, which may contain references. An empty text becomes no parts.
func (r *valueReader) readURLParts(to *[]ValuePart, v configfile.Node, what string, schemes ...string) error {
	s, ok := v.TextValue()
	parts, missing := r.splitReferences(s)
	if err := missingVariablesError(missing); err != nil {
		return err
	}
	if !ok || len(parts) > 0 && parts[0].Kind != LiteralPart {
		return mustBeError("%s", what)
	}
	if len(parts) > 0 {
		begin, err := lowerScheme(parts[0].Text, what, schemes...)
		if err != nil {
			return err
		}
		parts[0].Text = begin
	}
	*to = parts
	return nil
}

// readSecretRef reads a secret: a text with references, or "!" followed by a command. Unset variables are stored in
// Missing and are not an error.
func (r *valueReader) readSecretRef(to *SecretRef, v configfile.Node) error {
	s, ok := v.TextValue()
	if !ok || s == "" || s == "!" {
		return mustBeError("a string that is not empty")
	}
	if command, is := strings.CutPrefix(s, "!"); is {
		to.Parts = []ValuePart{{Kind: CommandPart, Text: command}}
		return nil
	}
	to.Parts, to.Missing = r.splitReferences(s)
	return nil
}
