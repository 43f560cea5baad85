package config

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
	"github.com/drawbridge-mcp/drawbridge/internal/launch"
)

// A LaunchFinding is one fact that a person should know about a row before it runs: a stable code, such as
// "inline-code", and a sentence that contains no value of the row.
type LaunchFinding = launch.Finding

// ApprovedProgram returns, for a project's row, a function that returns the path of the approved file, whatever the
// command resolves to now. Its error is a *ProgramChangedError with the next step if the file changed. For any other
// row ApprovedProgram returns nil.
func (s Server) ApprovedProgram() func() (path string, err error) {
	if s.Origin.Kind != OriginProject {
		return nil
	}
	return func() (string, error) {
		if err := s.Program.CheckUnchanged(); err != nil {
			return "", fmt.Errorf("%w (review it with: drawbridge mcp approve %s)", err, s.ID)
		}
		return s.Program.Path, nil
	}
}

func (s *Server) launchSpec() launch.Spec {
	l := launch.Spec{Command: s.Command, Args: s.Args, IsOwnRow: s.Origin.Kind != OriginProject}
	for _, p := range s.Env {
		l.Env = append(l.Env, launch.EnvVariable(p))
	}
	if member, name := s.KeyTarget(); member == "env" {
		l.Env = append(l.Env, launch.EnvVariable{Name: name})
	}
	return l
}

// A Confinement restricts a stdio server's program. The zero value restricts nothing.
type Confinement = launch.Confinement

// The levels of a Confinement: as far as the system can, or no start with less.
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

// LaunchFindings returns the facts that a person should know before a stdio server runs: code among its arguments,
// downloaded packages, containers that reach the machine. For a row that is not the person's own it also reports a
// command that is neither common for servers nor in Settings.AllowedCommands. For any other server it returns nothing.
func (s Server) LaunchFindings(settings Settings) []LaunchFinding {
	if s.Command == "" {
		return nil
	}
	l := s.launchSpec()
	return append(l.Findings(settings.AllowedCommands), l.Unpinned()...)
}

// A Download is a package that a stdio server's command fetches before it starts it.
type Download = launch.Download

// Download returns the package that the server's command fetches on its first start; false if it fetches none.
func (s Server) Download() (Download, bool) { return s.launchSpec().Download() }

// CommandLineProblem returns what is wrong with a command that is a whole command line; "" for a program's name.
func (s Server) CommandLineProblem() string { return launch.CommandLineProblem(s.Command) }

// SplitCommandLine returns the words of a whole command line that was written as a command; nil for a single word.
func SplitCommandLine(command string) []string { return launch.SplitCommandLine(command) }

// readAllowedCommands reads names and paths of programs, which may be globs. A path in the home begins with "~/".
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
