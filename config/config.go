// Package config reads the configuration: which servers there are, the settings, and the file and line of each.
//
// It reads the files of the native family, the files of other programs in a project's directory, and the paths a person
// named. Every row found there is returned again: as a server that may be mounted, or with the reason why not. Rows of
// other programs in the person's own files are not used; they can only be imported (ScanImports). A bad row does not
// affect other rows, and a broken file that was only discovered does not affect other files. The origin decides about
// trust: rows in the person's own files, or in files they named, are in force. Rows from a project directory wait for
// approval, and until then do not replace a server of the same name.
//
// The package also edits these files, and those of the client programs that Drawbridge serves. It changes one value at
// a time, in place, and keeps comments, order and unknown members. Each change is atomic: neither a crash nor another
// writer loses data.
//
// The package starts no process and opens no connection, and it writes only in the functions documented to write.
// Values may hold secrets once variables are expanded: errors, reasons and warnings contain names, files and lines,
// never a value.
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

// An OriginKind is the kind of source that a row comes from.
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

// String returns "path:line", or the path alone for the file as a whole.
func (o Origin) String() string {
	if o.Line == 0 {
		return o.Path
	}
	return fmt.Sprintf("%s:%d", o.Path, o.Line)
}

// A Server is one row of a configuration, with variables expanded.
type Server struct {
	// ID is the row's name as written; it is valid unless the row is refused. In an invalid name, characters unsafe for
	// a terminal are replaced, and a very long name is truncated.
	ID drawbridge.ServerID
	// Type is "stdio", "http" or "sse"; empty for a url without a type, which is tried as http and then as sse.
	Type string

	// Command, Args, Env and Cwd start a stdio server. Env is in the file's order and is added to the child's
	// environment. Cwd is the row's directory, joined to the working directory if relative. By default it is the home
	// for a User row, the project's directory for a Project row, the working directory for an Explicit one.
	Command string
	Args    []string
	Env     []NameValue
	Cwd     string

	// URL and Headers reach any other server. Headers are in the file's order.
	URL     string
	Headers []NameValue

	// Enabled is false only if the row disables the server.
	Enabled bool
	// Timeout limits a call of this server; 0 means the setting call_timeout.
	Timeout time.Duration

	// ExpectedTools names the tools the server may offer: nil means all of them, an empty list none.
	ExpectedTools *[]string
	// LockToolList keeps the first listing permanently. EnvIsolation restricts a child to the base environment.
	// ElicitationEnabled lets the server ask the person. Fence marks results as foreign text. HoldFlagged withholds
	// results that the shield flagged. Nil means the setting, or its default.
	LockToolList       *bool
	EnvIsolation       *bool
	ElicitationEnabled *bool
	Spotlight          *bool
	HoldFlagged        *bool
	// Isolate is "session" if each caller gets its own server; Share is "all" if principals may share one.
	Isolate, Share string
	// Credentials is PerCallerCredentials, or names stored credentials.
	Credentials string
	// Confine restricts the program of a stdio server.
	Confine Confinement
	// Trust is "trusted", "untrusted" or "sandboxed"; empty means untrusted.
	Trust string
	// IdleStop is the time without calls after which a stdio server is stopped; 0 means the setting, below 0 never.
	IdleStop time.Duration
	// MaxTools is the maximum number of tools accepted from the server; 0 means the setting.
	MaxTools int
	// MaxCallsPerMinute limits the calls of its tools in any 60 seconds; 0 means no limit.
	MaxCallsPerMinute int
	// Auth configures the sign-in at the server; nil if the row does not.
	Auth *Auth
	// FromVariables lists the values of Env and Headers that consist of one variable's name, such as "env TOKEN from
	// GITHUB_TOKEN".
	FromVariables []string
	// DeferredValues holds the values of Env, Headers and Auth that are resolved when the server is mounted; until then
	// those fields have the text as written. A value that looks like a reference and is not listed here is literal.
	DeferredValues []DeferredValue
	// ImportedFrom is the Name of the Provider that the row was imported from; empty if it was not imported.
	ImportedFrom string
	// UnknownMembers holds the members that Drawbridge does not know, in the file's order.
	UnknownMembers []UnknownMember

	// Provider is the Name of the Provider whose file has the row.
	Provider string
	Origin   Origin
	// Raw is the row in the native format, as written, with variables not expanded: an object without the name. It may
	// hold secrets. It is empty for a row that is not an object.
	Raw json.RawMessage
	// Hash is the hex SHA-256 of the row as written, with variables not expanded. Stored listings and approvals refer
	// to the row by it. Layout, comments and the order of members do not change it; nor do enabled, timeout, idle_stop,
	// imported_from and unknown members. The name and every other member do (see Fields).
	Hash string
	// Phase is Idle for a row that may be mounted, else NeedsApproval, Disabled or Refused.
	Phase drawbridge.ServerPhase
	// Reason is for people: why a row may not be mounted; empty for one that may.
	Reason string
	// DisabledBy is the file whose disabledServers names the row, if that list, and not the row itself, disables it.
	DisabledBy string `json:",omitempty"`
	// Program is the program file of a project's stdio server. It is the approved file, which is started; before an
	// approval it is the file that would be approved. It is not part of the configuration files.
	Program ProgramFile
	// Unresolved names the unset variables; "${NAME}" remains in their places. Any other text between braces is shown
	// as "…".
	Unresolved []string
}

// Transport returns the transport for people: "stdio", "http", "sse", or "http or sse" if both are tried.
func (s Server) Transport() string {
	if s.Type == "" {
		return "http or sse"
	}
	return s.Type
}

// WithoutOrigin returns the row without its position and its unknown members: two rows equal in this way mean the same
// server. The result may hold secrets.
func (s Server) WithoutOrigin() Server {
	s.Origin = Origin{Kind: s.Origin.Kind}
	s.Provider, s.ImportedFrom, s.Raw, s.Reason, s.UnknownMembers, s.FromVariables, s.Unresolved = "", "", nil,
		"", nil, nil, nil
	return s
}

// An UnknownMember is a member of a row that Drawbridge does not know.
type UnknownMember struct {
	Name string
	// Value is JSON, also where the row is in TOML.
	Value json.RawMessage
}

// A Warning tells a person about a problem in a file.
type Warning struct {
	Origin Origin
	// Server is the row that the warning is about; empty if it is about none.
	Server drawbridge.ServerID
	Text   string
}

// String returns "path:line: text".
func (w Warning) String() string { return w.Origin.String() + ": " + w.Text }

// A Configuration is the result of Load.
type Configuration struct {
	// Servers has the rows in configuration order. A name may occur more than once: a refused row does not claim its
	// name, and an unapproved project row claims it only against other such rows. At most one row of a name is Idle.
	Servers []Server
	// Shadowed has the rows that an earlier row of the same name replaced.
	Shadowed []Server
	Warnings []Warning
	// Settings are those of the user-level drawbridge.toml; zero fields mean their defaults.
	Settings Settings
	// Sources are the files that were read, in order.
	Sources []string
}

// Mountable returns the rows that may be mounted, in configuration order. Their names are distinct.
func (s Configuration) Mountable() []Server {
	var rows []Server
	for _, row := range s.Servers {
		if row.Phase == drawbridge.Idle {
			rows = append(rows, row)
		}
	}
	return rows
}

// ServerHashes returns the key of each row for stored listings and approvals.
func ServerHashes(rows []Server) (hashes []string) {
	for _, row := range rows {
		hashes = append(hashes, row.Hash)
	}
	return hashes
}

// Lookup returns the row in force for a name: the one that may be mounted, else the first. The second result is false
// if the name is not configured.
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

// Suggest returns the configured name nearest to id; empty if none is near.
func (s Configuration) Suggest(id drawbridge.ServerID) drawbridge.ServerID {
	known := make([]string, 0, len(s.Servers))
	for _, row := range s.Servers {
		known = append(known, string(row.ID))
	}
	return drawbridge.ServerID(configfile.Nearest(string(id), known))
}

// Options tell Load where to look. The zero value looks where a command started here would.
type Options struct {
	// Paths are the values of --mcp; they replace discovery. Each is split at commas, unless a file of that very name
	// exists. A file is read alone; a directory is searched as if it were the working directory, and its own files need
	// no approval.
	Paths []string
	// Dir is the working directory; empty means the process's.
	Dir string
	// SettingsFile replaces the person's own drawbridge.toml, and must exist; empty means no replacement.
	SettingsFile string
	// Home and XDGConfig are the home and the configuration directory; empty means the value from the environment.
	Home, XDGConfig string
	// AppData is the roaming profile of Windows; empty means the value from the environment. Other systems do not use
	// it.
	AppData string
	// Approved reports whether a person approved a valid project row whose Phase is NeedsApproval. Nil approves none.
	Approved func(Server) bool
	// LookupEnv looks up a variable; nil means the process's environment.
	LookupEnv func(string) (string, bool)
	// KeychainValue returns a stored secret by name. ScanImports treats a row that refers to it like one with the value
	// in plain text. Nil finds none.
	KeychainValue func(name string) (string, bool)
}
