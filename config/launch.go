package config

import (
	"path/filepath"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config/doc"
	"github.com/drawbridge-mcp/drawbridge/config/spawn"
)

// A Finding is one thing that a person should know of a row before they let it run: a code that stays what it is, such as
// "inline-code", and a sentence without a value of the row in it.
type Finding = spawn.Finding

func (s *Server) launch() spawn.Launch {
	l := spawn.Launch{Command: s.Command, Args: s.Args, Own: s.Origin.Kind != Project}
	for _, p := range s.Env {
		l.Env = append(l.Env, spawn.Variable(p))
	}
	return l
}

// Findings says what a person should know before they let a stdio server run: code among its arguments, packages that are
// downloaded, containers that reach the machine, and in a row that is not their own a command that is neither one of those
// that servers are usually run with nor of Settings.AllowedCommands. Of any other server it says nothing.
func (s Server) Findings(settings Settings) []Finding {
	if s.Command == "" {
		return nil
	}
	return s.launch().Findings(settings.AllowedCommands)
}

// commands reads names and paths of programs, which may have the signs of a glob. One from the home begins with "~/".
func (r *settingsReader) commands(v doc.Node) error {
	words, ok := v.Words()
	for _, w := range words {
		if rest, home := strings.CutPrefix(w, "~/"); home && r.home != "" {
			w = filepath.Join(r.home, rest)
		}
		if _, err := filepath.Match(w, ""); err != nil || w == "" {
			ok = false
		}
		r.settings.AllowedCommands = append(r.settings.AllowedCommands, w)
	}
	if !ok {
		return must("a list of commands or paths")
	}
	return nil
}
