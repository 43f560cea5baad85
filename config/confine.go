package config

import (
	"path/filepath"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config/doc"
)

// The levels of a Confinement.
const (
	// ConfineAuto confines the program as far as the system lets us.
	ConfineAuto = "auto"
	// ConfineRequired does not start it with less than what the row asks for.
	ConfineRequired = "required"
)

// A Confinement is what a stdio server's program is kept to. The zero value keeps it to nothing.
type Confinement struct {
	// Level is ConfineAuto or ConfineRequired; empty is none.
	Level string
	// Read and Write are absolute paths of files and directories that the program may read, and write too, beside what every
	// program needs, and its working directory.
	Read, Write []string
	// Offline keeps it from the network.
	Offline bool
}

// confine reads a level, or an object that says more and is required unless it says otherwise.
func (r *rowReader) confine(v doc.Node) {
	c := &r.server.Confine
	if v.Kind != doc.Table {
		c.Level = r.level(v)
		return
	}
	c.Level = ConfineRequired
	for _, m := range v.Members {
		switch m.Name {
		case "level":
			c.Level = r.level(m.Value)
		case "read":
			c.Read = r.paths("confine.read", m.Value)
		case "write":
			c.Write = r.paths("confine.write", m.Value)
		case "network":
			open, ok := m.Value.Flag()
			if c.Offline = !open; !ok {
				r.refuse(`"confine.network" must be true or false`)
			}
		default: // it may have been meant to keep the program from something
			r.refuse(`"confine" has no member %q%s`, m.Name, doc.DidYouMean(m.Name, []string{"level", "read", "write", "network"}))
		}
	}
}

func (r *rowReader) level(v doc.Node) string {
	if level := r.word("confine", v, "off", ConfineAuto, ConfineRequired); level != "off" {
		return level
	}
	return ""
}

// paths reads paths: those from the home begin with "~/", relative ones start at the row's directory.
func (r *rowReader) paths(name string, v doc.Node) (paths []string) {
	words, ok := v.Words()
	if !ok {
		r.refuse("%q must be a list of paths", name)
	}
	for _, w := range words {
		w = r.expand(name, w)
		if rest, home := strings.CutPrefix(w, "~/"); home || w == "~" {
			w = filepath.Join(r.home, strings.TrimPrefix(rest, "~"))
		}
		paths = append(paths, w)
	}
	return paths
}

// settleConfine puts the paths where the program starts, and refuses to let a server go unconfined that cannot be.
func (r *rowReader) settleConfine() {
	s := &r.server
	for _, paths := range [][]string{s.Confine.Read, s.Confine.Write} {
		for i, p := range paths {
			if !filepath.IsAbs(p) {
				p = filepath.Join(s.Cwd, p)
			}
			paths[i] = filepath.Clean(p)
		}
	}
	if s.URL != "" && s.Confine.Level == ConfineRequired {
		r.refuse(`"confine" is for programs that are started here: what is behind a url cannot be confined`)
	}
}
