package config

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
	"github.com/drawbridge-mcp/drawbridge/internal/launch"
)

// A LaunchFinding is one risk of a row that a person should know before the row runs. It has a stable code, such as
// "inline-code", and a sentence that contains no value of the row.
type LaunchFinding = launch.Finding

// ApprovedProgram returns a function that returns the path of the approved program file of a project's row. At each
// call, the function compares the file with the approved digest. It does not look up the command again, so another
// program of that name is not started. If the file changed, the error wraps a *ProgramChangedError and contains the
// command to review the change. For a row that is not a project's, ApprovedProgram returns nil.
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

// The levels of a Confinement. ConfineAuto confines the program as far as the system supports it. ConfineRequired
// refuses to start the program if the system cannot enforce all restrictions.
const (
	ConfineAuto     = launch.ConfineAuto
	ConfineRequired = launch.ConfineRequired
)

func (r *rowReader) readConfinement(v configfile.Node) {
	c, err := launch.ReadConfinement(v, r.home, func(s string) string { return r.expandVariables("confine", s) })
	r.hasConfinement = true
	if r.server.Confine = c; err != nil {
		r.refuse("%v", err)
	}
}

// defaultConfinement confines a project's program whose row does not set "confine": the row's author is not the person.
func (r *rowReader) defaultConfinement() {
	if s := &r.server; !r.hasConfinement && s.Origin.Kind == OriginProject && s.Command != "" {
		s.Confine.Level = ConfineAuto
	}
}

// LaunchFindings returns the risks that a person should know before a stdio server runs. Examples are code among its
// arguments, downloaded packages, and containers that can access the machine. For a project's row, LaunchFindings also
// reports a command that is neither usual for servers nor in Settings.AllowedCommands. For an http or sse server it
// returns nil.
func (s Server) LaunchFindings(settings Settings) []LaunchFinding {
	if s.Command == "" {
		return nil
	}
	l := s.launchSpec()
	return append(l.Findings(settings.AllowedCommands), l.Unpinned()...)
}

// A Download is a package that the command of a stdio server fetches before it starts the package.
type Download = launch.Download

// Download returns the package that the server's command fetches on its first start. The second result is false if the
// command fetches no package.
func (s Server) Download() (Download, bool) { return s.launchSpec().Download() }

// CommandLineProblem returns a description of the problem if the member command contains a whole command line, and ""
// otherwise.
func (s Server) CommandLineProblem() string { return launch.CommandLineProblem(s.Command) }

// SplitCommandLine returns the words of a command that contains a whole command line, such as "npx -y server". It
// returns nil if the command is a single word.
func SplitCommandLine(command string) []string { return launch.SplitCommandLine(command) }

// readAllowedCommands reads the setting allowed_commands: names and paths of programs. Each may be a glob, and a path
// that begins with "~/" starts at the home directory.
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
