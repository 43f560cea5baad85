package guards

import (
	"sync/atomic"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
)

// A ServerTable stores the data of configured servers that guards need for each call. The zero value contains no
// servers. Its methods may be called from several goroutines, and do not block.
type ServerTable struct {
	servers atomic.Pointer[map[drawbridge.ServerID]serverFacts]
}

// serverFacts is the data of one server.
type serverFacts struct {
	rate         ServerRate
	workingDir   string
	relativeDirs []string
}

// Update replaces the servers by those in rows, the servers of a new configuration. roots are the directories that
// Drawbridge announces to every server.
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

// facts returns the data of a server; the zero value for an unknown server.
func (t *ServerTable) facts(id drawbridge.ServerID) serverFacts {
	if servers := t.servers.Load(); servers != nil {
		return (*servers)[id]
	}
	return serverFacts{}
}

// Rate returns the rate limit of a server. An unknown server has no limit.
func (t *ServerTable) Rate(id drawbridge.ServerID) ServerRate { return t.facts(id).rate }

// WorkingDir returns the directory in which a server's program starts. It returns "" for a server with a URL and for an
// unknown server.
func (t *ServerTable) WorkingDir(id drawbridge.ServerID) string { return t.facts(id).workingDir }

// RelativeDirs returns the directories to which a server may join relative paths in a call, see the function
// RelativeDirs. It returns nil for a server with a URL and for an unknown server. The caller must not change the slice.
func (t *ServerTable) RelativeDirs(id drawbridge.ServerID) []string { return t.facts(id).relativeDirs }
