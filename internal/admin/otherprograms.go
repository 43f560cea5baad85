package admin

import (
	"os"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// A ClientState describes a client program that Drawbridge knows, and whether the program is configured to use
// Drawbridge as an MCP server.
type ClientState struct {
	Client string `json:"client"`
	Title  string `json:"title"`
	File   string `json:"file"`
	// Present reports whether File, the client's configuration file, exists. Connected reports whether Drawbridge is
	// configured in it.
	Present   bool `json:"present"`
	Connected bool `json:"connected"`
	// Command is the command in the file with which the client starts Drawbridge.
	Command string `json:"command,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// ClientStates returns the state of each client program that Drawbridge knows.
func (r *Service) ClientStates() []ClientState {
	states := []ClientState{}
	o := r.o.ConfigOptions
	for _, c := range config.Clients() {
		s := ClientState{Client: c.ID, Title: c.Title, File: c.Path(o)}
		_, err := os.Stat(s.File)
		s.Present = err == nil
		entry, has, err := c.Entry(o)
		s.Connected, s.Command = has, entry.Command
		if err != nil {
			s.Problem = err.Error()
		}
		states = append(states, s)
	}
	return states
}

// DirectCopies returns the names of the servers in a client's file that the client could also reach through Drawbridge.
// That is so if the person's own Drawbridge configuration contains the same definition, perhaps under another name. A
// server that cannot be started in Drawbridge, for example because it is disabled, is not included. For an unknown
// client the result is empty.
func (r *Service) DirectCopies(id string, set config.Configuration) ([]string, error) {
	c, ok := config.LookupClient(id)
	if !ok {
		return nil, nil
	}
	scanned, err := config.ScanImports(r.o.ConfigOptions, []string{id})
	if err != nil {
		return nil, err
	}
	path := c.Path(r.o.ConfigOptions)
	var names, kept []string
	for _, f := range scanned.Candidates {
		if f.Origin.Path != path {
			continue
		}
		own, has := set.Lookup(f.OwnName)
		if has && f.Status == config.ImportSame && own.Phase == drawbridge.Idle && own.Provider == nativeProvider &&
			own.Origin.Kind == config.OriginUser {
			names = append(names, string(f.Name))
			continue
		}
		kept = append(kept, string(f.Name))
	}
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(kept, name) }), nil
}

// PlaintextFiles returns the paths of the other programs' files that contain plain-text secrets of copied definitions,
// sorted. A definition counts as copied if its status is config.ImportNew. It also counts if it equals such a
// definition, or a definition in the person's own configuration.
func PlaintextFiles(rows []config.ImportCandidate) (paths []string) {
	for _, c := range rows {
		copied := c.Status == config.ImportNew || c.OwnName != "" ||
			c.SameAs != nil && rows[*c.SameAs].Status == config.ImportNew
		if copied && len(config.PlaintextSecrets(c.Raw)) > 0 && !slices.Contains(paths, c.Origin.Path) {
			paths = append(paths, c.Origin.Path)
		}
	}
	slices.Sort(paths)
	return paths
}
