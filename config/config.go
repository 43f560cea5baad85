// Package config says which servers there are, and where that is written.
//
// It reads the files of the native family, what other programs keep in a project's directory, and the paths a person
// named, and promises that every row found there is seen again: as one that may be mounted, or with the reason why not.
// What other programs keep in the person's own files is only there to be taken over (Scan). A bad row costs the other
// rows nothing, and a broken file that nobody named costs the other files nothing. Origin decides: what a person wrote
// into their own files, or named, is in force; what a project directory brings waits for approval, and until then
// takes nobody's place.
//
// It also changes such files, and those of the programs that Drawbridge serves: one value at a time, in place, so that
// comments, order and what nobody here knows stay; as one step, so that no crash and no other writer costs anything.
//
// Nothing is started or dialled here, and nothing written but by the functions that say so. Values may hold secrets
// once variables are put in; no error, reason or warning of this package repeats a value, only names, files and lines.
package config

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// A NameValue is a name and its value: one environment variable, one header.
type NameValue struct{ Name, Value string }

// An OriginKind says who put a row where it is.
type OriginKind string

// The kinds of origin.
const (
	// OriginUser is a file of the person's own: in force as it stands.
	OriginUser OriginKind = "user"
	// OriginProject is a file that came with a working directory: its rows wait for approval.
	OriginProject OriginKind = "project"
	// OriginExplicit is a file, or the project file of a directory, that a person named for this run: in force as it
	// stands.
	OriginExplicit OriginKind = "explicit"
)

// An Origin is a place in a file.
type Origin struct {
	Kind OriginKind
	// Path is absolute.
	Path string
	// Line counts from 1; 0 means the file as a whole.
	Line int
}

// String gives "path:line", or the path alone for the file as a whole.
func (o Origin) String() string {
	if o.Line == 0 {
		return o.Path
	}
	return fmt.Sprintf("%s:%d", o.Path, o.Line)
}

// A Server is one row of a configuration, its variables put in.
type Server struct {
	// ID is the row's name as it was written; it is valid unless the row is refused. In a name that is not,
	// what a terminal should not be shown is replaced, and a very long one is cut.
	ID drawbridge.ServerID
	// Type is "stdio", "http" or "sse"; empty for a url without a type, which is tried as http and then as sse.
	Type string

	// Command, Args, Env and Cwd start a stdio server. Env is in the file's order, and adds to what the child is given.
	// Cwd is where the row says, a relative one joined to the working directory; else the home for a User row, the
	// project's directory for a Project row, the working directory for an Explicit one.
	Command string
	Args    []string
	Env     []NameValue
	Cwd     string

	// URL and Headers reach any other server. Headers are in the file's order.
	URL     string
	Headers []NameValue

	// Enabled is false only where the row says so.
	Enabled bool
	// Timeout is how long a call of this server may take; 0 means the setting call_timeout.
	Timeout time.Duration

	// ExpectedTools names the tools the server may offer: nil means all of them, an empty list none.
	ExpectedTools *[]string
	// LockToolList keeps the first listing for good. EnvIsolation gives a child the base environment only.
	// ElicitationEnabled lets the server ask the person. Fence marks results as foreign text. HoldFlagged holds back
	// those in which the shield met a rule. Nil means the setting, or its default.
	LockToolList       *bool
	EnvIsolation       *bool
	ElicitationEnabled *bool
	Spotlight          *bool
	HoldFlagged        *bool
	// Isolate is "session" where each caller gets a server of its own, Share is "all" where principals may share one.
	Isolate, Share string
	// Credentials is PerCallerCredentials, or names stored credentials.
	Credentials string
	// Confine is what the program of a stdio server is kept to.
	Confine Confinement
	// Trust is "trusted", "untrusted" or "sandboxed"; empty means untrusted.
	Trust string
	// IdleStop is how long a stdio server may go uncalled before it is stopped; 0 means the setting, below 0 never.
	IdleStop time.Duration
	// MaxTools is the most tools that are taken from the server; 0 means the setting.
	MaxTools int
	// MaxCallsPerMinute is the most calls of its tools in any 60 seconds; 0 is any number.
	MaxCallsPerMinute int
	// Auth says how to sign in at the server, nil where the row does not.
	Auth *Auth
	// FromVariables says of which values of Env and Headers a variable was named as a whole, such as "env TOKEN from
	// GITHUB_TOKEN".
	FromVariables []string
	// DeferredValues has the values of Env, Headers and Auth that are put together when the server is mounted: they
	// stand there as they were written. A value that looks like a reference and is not named here is none.
	DeferredValues []DeferredValue
	// ImportedFrom is the Name of the Provider that the row was taken over from; empty where it was not.
	ImportedFrom string
	// UnknownMembers has the members that nobody here knows, in the file's order.
	UnknownMembers []UnknownMember

	// Provider is the Name of the Provider whose file has the row.
	Provider string
	Origin   Origin
	// Raw is the row in our own words as it was written, variables not put in: an object without the name. It may hold
	// secrets. For one that is no object it is empty.
	Raw json.RawMessage
	// Hash is the hex SHA-256 of the row as it was written, variables not put in. It names the row to those who
	// remember something of it: a listing, an approval. Layout, comments and the order of members do not change it;
	// nor do the members enabled, timeout, idle_stop and imported_from, and those that nobody knows. The name and
	// every other member do (see Fields).
	Hash string
	// Phase is Idle for a row that may be mounted, else NeedsApproval, Disabled or Refused.
	Phase drawbridge.ServerPhase
	// Reason says for people why a row may not be mounted; empty for one that may.
	Reason string
	// DisabledBy is the file whose disabledServers names the row, where that and no member of the row itself keeps it
	// off.
	DisabledBy string `json:",omitempty"`
	// Program is the file of a project's stdio server: the one that a person approved, which is what is started, or
	// where a decision is to be taken the one that would be. No file of the configuration says it.
	Program ProgramFile
	// Unresolved names the variables that are not set; "${NAME}" stayed in their places. What else a file has between
	// the braces is "…".
	Unresolved []string
}

// Transport says for people how the server is reached: "stdio", "http", "sse", or "http or sse" where that is tried.
func (s Server) Transport() string {
	if s.Type == "" {
		return "http or sse"
	}
	return s.Type
}

// WithoutOrigin is the row without what says where it stands, and what of it nobody knows: two rows with the same
// essence mean the same server. It has secrets in it.
func (s Server) WithoutOrigin() Server {
	s.Origin = Origin{Kind: s.Origin.Kind}
	s.Provider, s.ImportedFrom, s.Raw, s.Reason, s.UnknownMembers, s.FromVariables, s.Unresolved = "", "", nil,
		"", nil, nil, nil
	return s
}

// An UnknownMember is a member of a row that nobody here knows.
type UnknownMember struct {
	Name string
	// Value is JSON, also where the row is in TOML.
	Value json.RawMessage
}

// A Warning is something a person should know about what they wrote.
type Warning struct {
	Origin Origin
	// Server is the row that it is about; empty where it is about none.
	Server drawbridge.ServerID
	Text   string
}

// String gives "path:line: text".
func (w Warning) String() string { return w.Origin.String() + ": " + w.Text }

// A Configuration is all that was configured.
type Configuration struct {
	// Servers has the rows in configuration order. A name may stand here more than once: a row that is refused takes
	// nobody's place, and a project's row that is not approved only that of another such row. At most one row of a
	// name is Idle.
	Servers []Server
	// Shadowed has the rows that lost to an earlier one of the same name.
	Shadowed []Server
	Warnings []Warning
	// Settings are those of the user-level drawbridge.toml; zero fields mean their defaults.
	Settings Settings
	// Sources are the files that were read, in order.
	Sources []string
}

// Mountable gives the rows that may be mounted, in configuration order. Their names are distinct.
func (s Configuration) Mountable() []Server {
	var rows []Server
	for _, row := range s.Servers {
		if row.Phase == drawbridge.Idle {
			rows = append(rows, row)
		}
	}
	return rows
}

// ServerHashes names rows as those know them who remember something of them.
func ServerHashes(rows []Server) (hashes []string) {
	for _, row := range rows {
		hashes = append(hashes, row.Hash)
	}
	return hashes
}

// Lookup gives the row that counts for a name: the one that may be mounted, else the first. It says false where the
// name is not configured.
func (s Configuration) Lookup(id drawbridge.ServerID) (Server, bool) {
	var first *Server
	for i, row := range s.Servers {
		switch {
		case row.ID != id:
		case row.Phase == drawbridge.Idle:
			return row, true
		case first == nil:
			first = &s.Servers[i]
		}
	}
	if first == nil {
		return Server{}, false
	}
	return *first, true
}

// Suggest gives the configured name that somebody may have meant by id; empty where none is near.
func (s Configuration) Suggest(id drawbridge.ServerID) drawbridge.ServerID {
	known := make([]string, 0, len(s.Servers))
	for _, row := range s.Servers {
		known = append(known, string(row.ID))
	}
	return drawbridge.ServerID(configfile.Nearest(string(id), known))
}

// Options say where to look. The zero value looks where a command started here would.
type Options struct {
	// Paths are what a person named with --mcp; they replace discovery. Each splits on commas, unless a file of that
	// very name exists. A file is read alone; a directory is searched as if it were the working directory, and what its
	// own files say needs no approval.
	Paths []string
	// Dir is the working directory; empty means the process's.
	Dir string
	// SettingsFile is a file that is read in the place of the person's own drawbridge.toml, and must exist; empty
	// means that one.
	SettingsFile string
	// Home and XDGConfig are the home and the configuration directory; empty means what the environment says.
	Home, XDGConfig string
	// AppData is the roaming profile of Windows; empty means what the environment says. Other systems have none.
	AppData string
	// Approved says whether a person approved a row that a project brings: a valid one, whose Phase is NeedsApproval.
	// Nil approves none.
	Approved func(Server) bool
	// LookupEnv finds a variable; nil means the process's environment.
	LookupEnv func(string) (string, bool)
	// KeychainValue finds a value that the person keeps under a name, for Scan: a row that refers to it is the same as
	// one that has it in plain text. Nil finds none.
	KeychainValue func(name string) (string, bool)
}
