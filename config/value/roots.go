package value

import (
	"net/url"
	"path/filepath"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config/doc"
)

// A Root is a directory that servers are told of: a file URI, and a name for people, which may be empty.
type Root struct{ URI, Name string }

// Roots reads directories or file URIs: a list, or a table by name. Each may be a table with a uri or a path, and a name; a
// table of one root may stand for the list.
func (r *Reader) Roots(to *[]Root, v doc.Node) error {
	var roots []Root
	ok := true
	add := func(name string, v doc.Node) {
		root, is := r.root(v)
		if name != "" {
			is = is && root.Name == ""
			root.Name = name
		}
		ok = ok && is
		roots = append(roots, root)
	}
	switch {
	case v.Kind == doc.List:
		for _, item := range v.Items {
			add("", item)
		}
	case v.Kind == doc.Table && isRoot(v):
		add("", v)
	case v.Kind == doc.Table:
		for _, m := range v.Members {
			add(m.Name, m.Value)
		}
	default:
		ok = false
	}
	if !ok {
		return Must("a list of directories or file URIs, or a table of them by name; " +
			"a root has a uri or a path, and may have a name")
	}
	*to = roots
	return nil
}

// isRoot reports whether a table is meant to be one root: it has a member of one.
func isRoot(v doc.Node) bool {
	for _, m := range v.Members {
		switch m.Name {
		case "uri", "path", "name":
			return true
		}
	}
	return false
}

// root reads one root; ok is false where the value is not one.
func (r *Reader) root(v doc.Node) (root Root, ok bool) {
	if v.Kind != doc.Table {
		root.URI, ok = r.rootURI(v)
		return root, ok
	}
	for _, m := range v.Members {
		switch m.Name {
		case "name":
			if root.Name, ok = m.Value.Word(); !ok {
				return Root{}, false
			}
		case "uri", "path":
			if root.URI != "" {
				return Root{}, false
			}
			if root.URI, ok = r.rootURI(m.Value); !ok {
				return Root{}, false
			}
		default:
			return Root{}, false
		}
	}
	return root, root.URI != ""
}

// rootURI reads a directory or a file URI, as a file URI.
func (r *Reader) rootURI(v doc.Node) (uri string, ok bool) {
	if s, _ := v.Word(); strings.HasPrefix(s, "file://") {
		return s, true
	}
	var dir string
	if err := r.Path(&dir, v); err != nil {
		return "", false
	}
	slashed := filepath.ToSlash(dir)
	if !strings.HasPrefix(slashed, "/") { // a drive on Windows
		slashed = "/" + slashed
	}
	return (&url.URL{Scheme: "file", Path: slashed}).String(), true
}
