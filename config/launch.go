package config

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
	"github.com/drawbridge-mcp/drawbridge/internal/launch"
)

// A LaunchFinding is one thing that a person should know of a row before they let it run: a code that stays what it
// is, such as "inline-code", and a sentence without a value of the row in it.
type LaunchFinding = launch.Finding

// HashProgram reads the file at an absolute path. One that is too large is a *ProgramTooLargeError.
func HashProgram(path string) (ProgramFile, error) { return hashProgramFile(path) }

// CheckProgramSize says whether the file at an absolute path may be approved, without reading it.
func CheckProgramSize(path string) error { return checkProgramFits(path) }

// ApprovedProgram gives, for a project's row, what gives the very file that a person approved, whatever its command
// means in the environment of this moment: the error is a *ProgramChangedError where the file is not what it was, and
// says what to do. For any other row it is nil.
func (s Server) ApprovedProgram() func() (path string, err error) {
	if s.Origin.Kind != OriginProject {
		return nil
	}
	return func() (string, error) {
		if err := s.Program.CheckUnchanged(); err != nil {
			return "", fmt.Errorf("%w (look at it: drawbridge mcp approve %s)", err, s.ID)
		}
		return s.Program.Path, nil
	}
}

// ProgramInFacts gives the program in facts; the zero one where they have none.
func ProgramInFacts(all []NameValue) ProgramFile { return programFromFacts(toFacts(all)) }

func (s *Server) launchSpec() launch.Spec {
	l := launch.Spec{Command: s.Command, Args: s.Args, IsOwnRow: s.Origin.Kind != OriginProject}
	for _, p := range s.Env {
		l.Env = append(l.Env, launch.EnvVariable(p))
	}
	return l
}

// A Confinement is what a stdio server's program is kept to. The zero value keeps it to nothing.
type Confinement = launch.Confinement

// The levels of a Confinement: as far as the system lets us, and no start with less.
const (
	ConfineAuto     = launch.ConfineAuto
	ConfineRequired = launch.ConfineRequired
)

func (r *rowReader) readConfinement(v configfile.Node) {
	c, err := launch.ReadConfinement(v, r.home, func(s string) string { return r.expandVariables("confine", s) })
	if r.server.Confine = c; err != nil {
		r.refuse("%v", err)
	}
}

// LaunchFindings says what a person should know before they let a stdio server run: code among its arguments, packages
// that are downloaded, containers that reach the machine, and in a row that is not their own a command that is neither
// one of those that servers are usually run with nor of Settings.AllowedCommands. Of any other server it says nothing.
func (s Server) LaunchFindings(settings Settings) []LaunchFinding {
	if s.Command == "" {
		return nil
	}
	l := s.launchSpec()
	return append(l.Findings(settings.AllowedCommands), l.Unpinned()...)
}

// readAllowedCommands reads names and paths of programs, which may have the signs of a glob. One from the home begins
// with "~/".
func (r *settingsReader) readAllowedCommands(v configfile.Node) error {
	words, ok := v.TextValues()
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
		return mustBeError("a list of commands or paths")
	}
	return nil
}
