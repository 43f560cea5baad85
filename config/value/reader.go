package value

import (
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config/doc"
	"github.com/drawbridge-mcp/drawbridge/config/refer"
)

// A Reader reads values of settings in which variables are put in. Its errors follow a setting's name, and hold no value.
type Reader struct {
	// Dir is the directory that relative paths start at, Home what "~" stands for.
	Dir, Home string
	Lookup    func(string) (string, bool)
}

// Words gives a text with variables put in. One that lacks one is an error: it would be half a path.
func (r *Reader) Words(v doc.Node) (string, error) {
	s, ok := v.Word()
	if !ok || s == "" {
		return "", Must("a string that is not empty")
	}
	parts, missing := r.parts(s)
	text, later := refer.AsText(parts)
	if later != nil {
		return "", fmt.Errorf("must do without ${%s:…}", later.Kind)
	}
	return text, lacking(missing)
}

// lacking is the error about variables that are not set.
func lacking(missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("needs %s, which is not set", strings.Join(missing, ", "))
}

// parts takes a text apart, with the paths of files made absolute, and names the variables that are not set.
func (r *Reader) parts(s string) (parts []refer.Part, missing []string) {
	parts = refer.PutIn(s, r.Lookup, func(inner string) { missing = append(missing, doc.Placeholder(inner)) })
	for i, p := range parts {
		if p.Kind == refer.FromFile {
			parts[i].Text = r.absolute(p.Text)
		}
	}
	return parts, missing
}

func (r *Reader) absolute(s string) string {
	if rest, ok := strings.CutPrefix(s, "~/"); ok {
		s = filepath.Join(r.Home, rest)
	}
	if !filepath.IsAbs(s) {
		s = filepath.Join(r.Dir, s)
	}
	return filepath.Clean(s)
}

// Text reads a text that is not empty.
func (r *Reader) Text(to *string, v doc.Node) (err error) {
	*to, err = r.Words(v)
	return err
}

// Path reads a path: absolute, from the home with "~/", or relative to the file it is written in. A URL is refused: a directory
// would be named by it, with its password.
func (r *Reader) Path(to *string, v doc.Node) error {
	s, err := r.Words(v)
	switch {
	case err != nil:
		return err
	case strings.Contains(s, "://"):
		return Must("a path, not a URL")
	}
	*to = r.absolute(s)
	return nil
}

// Web reads the URL of something on the web.
func (r *Reader) Web(to *string, v doc.Node) error {
	s, err := r.Words(v)
	if err != nil {
		return err
	}
	if u, err := url.Parse(s); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return Must("an https:// URL")
	}
	*to = s
	return nil
}

// Database reads the URL of a Postgres database.
func (r *Reader) Database(to *string, v doc.Node) error {
	s, err := r.Words(v)
	if err != nil {
		return err
	}
	*to, err = lowerScheme(s, "a postgres:// URL", "postgres", "postgresql")
	return err
}

// urlScheme is how a URL begins (RFC 3986, 3.1).
var urlScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)

// lowerScheme returns a URL of one of the schemes with its scheme in lower case. The error names the scheme and nothing else.
func lowerScheme(s, what string, known ...string) (string, error) {
	begin := urlScheme.FindString(s)
	scheme := strings.ToLower(strings.TrimSuffix(begin, "://"))
	switch {
	case scheme == "":
		return "", Must("%s", what)
	case !slices.Contains(known, scheme):
		return "", Must("%s, and %q is an unknown scheme", what, scheme)
	}
	return scheme + s[len(scheme):], nil
}

// Place reads a URL of one of the schemes, which may refer to what is found later; an empty one is none.
func (r *Reader) Place(to *[]refer.Part, v doc.Node, what string, schemes ...string) error {
	s, ok := v.Word()
	parts, missing := r.parts(s)
	if err := lacking(missing); err != nil {
		return err
	}
	if !ok || len(parts) > 0 && parts[0].Kind != refer.Literal {
		return Must("%s", what)
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

// Key reads a secret, which may hold references, or be a command as a whole, after "!". A variable that is not set is no error.
func (r *Reader) Key(to *refer.Key, v doc.Node) error {
	s, ok := v.Word()
	if !ok || s == "" || s == "!" {
		return Must("a string that is not empty")
	}
	if command, is := strings.CutPrefix(s, "!"); is {
		to.Parts = []refer.Part{{Kind: refer.FromCommand, Text: command}}
		return nil
	}
	to.Parts, to.Missing = r.parts(s)
	return nil
}
