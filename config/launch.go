package config

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config/doc"
	"github.com/drawbridge-mcp/drawbridge/config/facts"
	"github.com/drawbridge-mcp/drawbridge/config/spawn"
	"github.com/drawbridge-mcp/drawbridge/config/value"
)

// A Finding is one thing that a person should know of a row before they let it run: a code that stays what it is, such as
// "inline-code", and a sentence without a value of the row in it.
type Finding = spawn.Finding

// A Program is the file that a command means, with what was in it.
type Program = facts.Program

// A ChangedProgram is for a program that is not the one a person approved.
type ChangedProgram = facts.ChangedError

// Programs reads the programs of many rows, the same file once.
type Programs = facts.Programs

// A TooLargeProgram is for a program that cannot be approved since nobody reads it to its end.
type TooLargeProgram = facts.TooLargeError

// ProgramAt reads the file at an absolute path. One that is too large is a *TooLargeProgram.
func ProgramAt(path string) (Program, error) { return facts.ProgramAt(path) }

// ProgramFits says whether the file at an absolute path may be approved, without reading it.
func ProgramFits(path string) error { return facts.Fits(path) }

// Approved gives, for a project's row, what gives the very file that a person approved, whatever its command means in the
// environment of this moment: the error is a *ChangedProgram where the file is not what it was, and says what to do. For any other
// row it is nil.
func (s Server) Approved() func() (path string, err error) {
	if s.Origin.Kind != Project {
		return nil
	}
	return func() (string, error) {
		if err := s.Program.Check(); err != nil {
			return "", fmt.Errorf("%w (look at it: drawbridge mcp approve %s)", err, s.ID)
		}
		return s.Program.Path, nil
	}
}

// ProgramIn gives the program in facts; the zero one where they have none.
func ProgramIn(all []Pair) Program { return facts.ProgramIn(shown(all)) }

func (s *Server) launch() spawn.Launch {
	l := spawn.Launch{Command: s.Command, Args: s.Args, Own: s.Origin.Kind != Project}
	for _, p := range s.Env {
		l.Env = append(l.Env, spawn.Variable(p))
	}
	return l
}

// A Confinement is what a stdio server's program is kept to. The zero value keeps it to nothing.
type Confinement = spawn.Confinement

// The levels of a Confinement: as far as the system lets us, and no start with less.
const (
	ConfineAuto     = spawn.ConfineAuto
	ConfineRequired = spawn.ConfineRequired
)

func (r *rowReader) confine(v doc.Node) {
	c, err := spawn.ReadConfinement(v, r.home, func(s string) string { return r.expand("confine", s) })
	if r.server.Confine = c; err != nil {
		r.refuse("%v", err)
	}
}

// Findings says what a person should know before they let a stdio server run: code among its arguments, packages that are
// downloaded, containers that reach the machine, and in a row that is not their own a command that is neither one of those
// that servers are usually run with nor of Settings.AllowedCommands. Of any other server it says nothing.
func (s Server) Findings(settings Settings) []Finding {
	if s.Command == "" {
		return nil
	}
	l := s.launch()
	return append(l.Findings(settings.AllowedCommands), l.Unpinned()...)
}

// commands reads names and paths of programs, which may have the signs of a glob. One from the home begins with "~/".
func (r *settingsReader) commands(v doc.Node) error {
	words, ok := v.Words()
	for _, w := range words {
		if rest, home := strings.CutPrefix(w, "~/"); home && r.Home != "" {
			w = filepath.Join(r.Home, rest)
		}
		if _, err := filepath.Match(w, ""); err != nil || w == "" {
			ok = false
		}
		r.settings.AllowedCommands = append(r.settings.AllowedCommands, w)
	}
	if !ok {
		return value.Must("a list of commands or paths")
	}
	return nil
}
