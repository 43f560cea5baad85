package config

import (
	"net/url"
	"path/filepath"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// A Root is a directory that servers receive as an MCP root. URI is a file URI. Name is a name for people and may be
// empty.
type Root struct{ URI, Name string }

// readRoots reads roots from a list, or from a table whose keys are the names of the roots. Each root is a directory, a
// file URI, or a table with a uri or a path, and optionally a name. A single table of this kind may replace the whole
// list.
func (r *valueReader) readRoots(to *[]Root, v configfile.Node) error {
	var roots []Root
	ok := true
	add := func(name string, v configfile.Node) {
		root, is := r.root(v)
		if name != "" {
			is = is && root.Name == ""
			root.Name = name
		}
		ok = ok && is
		roots = append(roots, root)
	}
	switch {
	case v.Kind == configfile.List:
		for _, item := range v.Items {
			add("", item)
		}
	case v.Kind == configfile.Table && isRoot(v):
		add("", v)
	case v.Kind == configfile.Table:
		for _, m := range v.Members {
			add(m.Name, m.Value)
		}
	default:
		ok = false
	}
	if !ok {
		return mustBeError("a list of directories or file URIs, or a table of them by name; " +
			"a root has a uri or a path, and may have a name")
	}
	*to = roots
	return nil
}

// isRoot reports whether a table is a single root: it has a member uri, path or name.
func isRoot(v configfile.Node) bool {
	for _, m := range v.Members {
		switch m.Name {
		case "uri", "path", "name":
			return true
		}
	}
	return false
}

// root reads one root; ok is false if the value is not a valid root.
func (r *valueReader) root(v configfile.Node) (root Root, ok bool) {
	if v.Kind != configfile.Table {
		root.URI, ok = r.rootURI(v)
		return root, ok
	}
	for _, m := range v.Members {
		switch m.Name {
		case "name":
			if root.Name, ok = m.Value.TextValue(); !ok {
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

// rootURI reads a directory or a file URI, and returns it as a file URI.
func (r *valueReader) rootURI(v configfile.Node) (uri string, ok bool) {
	if s, _ := v.TextValue(); strings.HasPrefix(s, "file://") {
		return s, true
	}
	var dir string
	if err := r.readPath(&dir, v); err != nil {
		return "", false
	}
	slashed := filepath.ToSlash(dir)
	if !strings.HasPrefix(slashed, "/") { // a path with a drive letter, on Windows
		slashed = "/" + slashed
	}
	return (&url.URL{Scheme: "file", Path: slashed}).String(), true
}
