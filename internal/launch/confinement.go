package launch

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// The levels of a Confinement.
const (
	// ConfineAuto confines the program as far as the system supports it.
	ConfineAuto = "auto"
	// ConfineRequired confines the program and prevents its start if the system cannot enforce all restrictions of the
	// row.
	ConfineRequired = "required"
)

// A Confinement restricts a stdio server's program. The zero value restricts nothing.
type Confinement struct {
	// Level is ConfineAuto or ConfineRequired; empty means no confinement.
	Level string
	// Read contains absolute paths of files and directories that the program may read. Write contains paths that the
	// program may read and write. The program may also use its working directory and the paths that every program
	// needs.
	Read, Write []string
	// Offline denies the program access to the network.
	Offline bool
}

// ReadConfinement parses the member "confine" of a row: a level, or an object with the members level, read, write and
// network. The level of an object is ConfineRequired unless the object sets another level. In a path, home replaces a
// leading "~", and expand expands variables. An invalid or unknown member is an error.
func ReadConfinement(v configfile.Node, home string, expand func(string) string) (c Confinement, err error) {
	if v.Kind != configfile.Table {
		c.Level, err = readConfineLevel(v)
		return c, err
	}
	c.Level = ConfineRequired
	for _, m := range v.Members {
		switch m.Name {
		case "level":
			c.Level, err = readConfineLevel(m.Value)
		case "read":
			c.Read, err = readConfinePaths(m, home, expand)
		case "write":
			c.Write, err = readConfinePaths(m, home, expand)
		case "network":
			open, ok := m.Value.Bool()
			if c.Offline = !open; !ok {
				err = fmt.Errorf(`"confine.network" must be true or false`)
			}
		default: // an unknown member may be a restriction, so it is not ignored
			err = fmt.Errorf(`"confine" has no member %s%s`, safetext.Quote(m.Name), configfile.DidYouMean(m.Name,
				[]string{"level", "read", "write", "network"}))
		}
		if err != nil {
			return Confinement{}, err
		}
	}
	return c, nil
}

func readConfineLevel(v configfile.Node) (string, error) {
	switch said, _ := v.TextValue(); said {
	case "off":
		return "", nil
	case ConfineAuto, ConfineRequired:
		return said, nil
	}
	return "", fmt.Errorf(`"confine" must be %s, or an object`, configfile.JoinOr([]string{"off", ConfineAuto,
		ConfineRequired}))
}

func readConfinePaths(m configfile.Member, home string, expand func(string) string) (all []string, err error) {
	words, ok := m.Value.TextValues()
	if !ok {
		return nil, fmt.Errorf("%q must be a list of paths", "confine."+m.Name)
	}
	for _, w := range words {
		w = expand(w)
		if rest, ok := strings.CutPrefix(w, "~/"); ok || w == "~" {
			w = filepath.Join(home, strings.TrimPrefix(rest, "~"))
		}
		all = append(all, w)
	}
	return all, nil
}

// RelativeTo returns the confinement with relative paths resolved against dir, the working directory of the program. It
// changes the path slices of c.
func (c Confinement) RelativeTo(dir string) Confinement {
	for _, paths := range [][]string{c.Read, c.Write} {
		for i, p := range paths {
			if !filepath.IsAbs(p) {
				p = filepath.Join(dir, p)
			}
			paths[i] = filepath.Clean(p)
		}
	}
	return c
}
