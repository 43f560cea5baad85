package guards

import (
	"sync/atomic"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// A ServerTable holds the facts about the mountable servers that guards ask for at each call. The zero value knows no
// server. Its methods may be called from several goroutines, and do not block.
type ServerTable struct {
	servers atomic.Pointer[map[drawbridge.ServerID]serverFacts]
}

// serverFacts are the facts about one server.
type serverFacts struct {
	rate         ServerRate
	workingDir   string
	relativeDirs []string
}

// Update replaces the servers by those of rows. roots are the directories that every server is told of.
func (t *ServerTable) Update(rows []config.Server, roots []string) {
	servers := make(map[drawbridge.ServerID]serverFacts, len(rows))
	for _, row := range rows {
		s := serverFacts{rate: ServerRate{Name: row.Hash, Max: row.MaxCallsPerMinute}}
		if row.URL == "" { // a server on another machine has other files
			s.workingDir, s.relativeDirs = row.Cwd, RelativeDirs(row, roots)
		}
		servers[row.ID] = s
	}
	t.servers.Store(&servers)
}

// facts returns the facts about a server; for an unknown one the zero value.
func (t *ServerTable) facts(id drawbridge.ServerID) serverFacts {
	if servers := t.servers.Load(); servers != nil {
		return (*servers)[id]
	}
	return serverFacts{}
}

// Rate returns the rate limit of a server. An unknown server has none.
func (t *ServerTable) Rate(id drawbridge.ServerID) ServerRate { return t.facts(id).rate }

// WorkingDir returns the directory that a server's program starts in. It is empty for a server that is reached by a
// URL, and for an unknown one.
func (t *ServerTable) WorkingDir(id drawbridge.ServerID) string { return t.facts(id).workingDir }

// RelativeDirs returns the directories that relative paths in calls of a server may start at, see the function
// RelativeDirs. A server that is reached by a URL has none, nor has an unknown one. The slice must not be changed.
func (t *ServerTable) RelativeDirs(id drawbridge.ServerID) []string { return t.facts(id).relativeDirs }
