// Package config reads the configuration: the MCP servers, the settings, and the file and line of each server.
//
// It reads Drawbridge's own files, the files of other programs in a project's directory, and the files that a person
// named. In this package, a row is the entry of one server in such a file. Load returns every row: as a server that may
// be mounted, or with the reason why it may not be mounted. Rows in the user-level files of other programs are not
// used; they can only be imported (ScanImports).
//
// An invalid row does not affect other rows. A file that cannot be parsed is left out with a warning, and does not
// affect other files. If a person named that file, or if it contains the settings, Load returns an error instead.
//
// The origin of a row decides whether the row is used without an approval. Rows in the person's own user-level files,
// and in files that the person named, are used without an approval. Rows from a project directory need an approval.
// Until they are approved, they do not replace a server of the same name.
//
// The package also edits these files, and the configuration files of client programs. It changes one value at a time,
// in place, and preserves comments, order and unknown members. Each change is atomic: neither a crash nor another
// writer loses data.
//
// The package starts no process and opens no connection. It writes only in the functions that are documented to write.
// Once variables are expanded, values may be secrets: errors, reasons and warnings contain names, files and lines, and
// never a value.
package config

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// A NameValue is a name and its value, such as one environment variable or one header.
type NameValue struct{ Name, Value string }

// An OriginKind is the kind of source that a row comes from.
type OriginKind string

// The kinds of origin.
const (
	// OriginUser is one of the person's own user-level files; its rows are in force without approval.
	OriginUser OriginKind = "user"
	// OriginProject is a file in a working directory, or a plugin's file; its rows need approval.
	OriginProject OriginKind = "project"
	// OriginExplicit is a file that a person named for this run, or a project file that Load found in a directory that
	// the person named. Its rows are in force without approval.
	OriginExplicit OriginKind = "explicit"
)

// An Origin is the file and line that a row or a warning comes from.
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
	// ID is the row's name as written. It is valid unless Phase is Refused. In an invalid name, characters unsafe for a
	// terminal are replaced, and a very long name is truncated.
	ID drawbridge.ServerID
	// Type is "stdio", "http" or "sse". It is empty for a url without a type: http is tried first, then sse.
	Type string

	// Command is the program of a stdio server, and Args are its arguments. Env is added to the program's environment,
	// in the file's order. Cwd is the program's working directory. A relative directory in the row is joined to
	// Drawbridge's working directory (Options.Dir). If the row has no directory, Cwd is the home directory for
	// OriginUser, and Drawbridge's working directory for the other kinds.
	Command string
	Args    []string
	Env     []NameValue
	Cwd     string

	// URL is the address of an http or sse server. Headers are sent with each request to it, in the file's order.
	URL     string
	Headers []NameValue

	// Enabled is false only if the row itself disables the server. A disabledServers list does not change it; see
	// DisabledBy.
	Enabled bool
	// Timeout limits each call to this server; 0 means the setting call_timeout.
	Timeout time.Duration

	// ExpectedTools names the only tools that the server may offer: nil allows all tools, an empty list allows none.
	ExpectedTools *[]string
	// The following five fields are nil if the row does not set them; the setting of the same name, or its default,
	// then applies. LockToolList keeps the server's first tool list and ignores later changes. EnvIsolation restricts
	// the environment of a stdio server's program to the base environment and Env. ElicitationEnabled lets the server
	// ask questions to the person at the client. Spotlight marks the server's results as foreign text. HoldFlagged
	// holds back results that match a rule of the shield, so that the client does not receive them.
	LockToolList       *bool
	EnvIsolation       *bool
	ElicitationEnabled *bool
	Spotlight          *bool
	HoldFlagged        *bool
	// NotForScripts is true if scripts in the sandbox may not call the server's tools.
	NotForScripts bool
	// Isolate is "session" if each caller gets its own server process or connection; otherwise the callers of one
	// principal share one. Share is "all" if all principals share one.
	Isolate, Share string
	// Credentials is PerCallerCredentials, or the name of stored credentials that are sent to the server for every
	// caller.
	Credentials string
	// Confine restricts the program of a stdio server.
	Confine Confinement
	// Trust is the highest trust level that the server can have: "trusted", "untrusted" or "sandboxed"; empty means
	// untrusted.
	Trust string
	// Labels are the labels of the results of the server's tools.
	Labels []ToolLabel
	// IdleStop is the time without calls after which a stdio server is stopped. 0 means Settings.IdleStop; a negative
	// value never stops the server.
	IdleStop time.Duration
	// MaxTools is the maximum number of tools accepted from the server; 0 means the maximum in Settings.
	MaxTools int
	// MaxCallsPerMinute is the maximum number of calls of the server's tools in any 60 seconds, over all callers; 0
	// means no limit.
	MaxCallsPerMinute int
	// Auth configures the sign-in at the server; nil if the row has no auth member.
	Auth *Auth
	// FromVariables describes the values of Env and Headers for which the row contains only the name of an environment
	// variable. Such a value was replaced by the variable's content. An example of an element is "env TOKEN from
	// GITHUB_TOKEN".
	FromVariables []string
	// DeferredValues lists the values of Env, Headers and Auth that are resolved only when the server is mounted. Until
	// then, Env, Headers and Auth contain these values as written. A value that is not listed is literal, even if it
	// looks like a reference.
	DeferredValues []DeferredValue
	// ImportedFrom is the Provider.Name of the program that the row was imported from; empty if it was not imported.
	ImportedFrom string
	// UnknownMembers lists the members that Drawbridge does not know, in the file's order.
	UnknownMembers []UnknownMember

	// Provider is the Provider.Name of the program whose file contains the row.
	Provider string
	Origin   Origin
	// Raw is the row as a JSON object in Drawbridge's format, without the name and with variables not expanded. It may
	// contain secrets. It is empty for a row that is not an object.
	Raw json.RawMessage
	// Hash is the hex SHA-256 of the row as written, with variables not expanded. Stored tool lists and approvals are
	// found by this hash. Hash covers the name and every member except enabled, timeout, idle_stop, imported_from and
	// unknown members. Layout, comments and the order of members do not change it.
	Hash string
	// Phase is Idle for a row that may be mounted, otherwise NeedsApproval, Disabled or Refused.
	Phase drawbridge.ServerPhase
	// Reason describes for people why the row may not be mounted; empty if it may be mounted.
	Reason string
	// DisabledBy is the path of the file whose disabledServers list disables the row. It is empty for an enabled row,
	// and for a row with enabled = false.
	DisabledBy string `json:",omitempty"`
	// Program identifies the program file of a project's stdio server. Before an approval, it is the file that a person
	// would approve. After an approval, it is the approved file, and only this file is started. Load does not set
	// Program.
	Program ProgramFile
	// Unresolved names the variables that are not set. In the values, they remain as "${NAME}". Text after the name,
	// such as a default value, is replaced by "…", since it may be a secret.
	Unresolved []string
}

// Transport returns the name of the transport for people: "stdio", "http", "sse", or "http or sse" if both are tried.
func (s Server) Transport() string {
	if s.Type == "" {
		return "http or sse"
	}
	return s.Type
}

// WithoutOrigin returns the row without the fields that do not define the server. These are the path and line of
// Origin, Provider, ImportedFrom, Raw, Reason, UnknownMembers, FromVariables and Unresolved. If the results of two rows
// are equal, the rows define the same server. The result may contain secrets.
func (s Server) WithoutOrigin() Server {
	s.Origin = Origin{Kind: s.Origin.Kind}
	s.Provider, s.ImportedFrom, s.Raw, s.Reason, s.UnknownMembers, s.FromVariables, s.Unresolved = "", "", nil,
		"", nil, nil, nil
	return s
}

// An UnknownMember is a member of a row that Drawbridge does not know.
type UnknownMember struct {
	Name string
	// Value is JSON, even if the row is in TOML.
	Value json.RawMessage
}

// A Warning describes a problem in a file for people.
type Warning struct {
	Origin Origin
	// Server is the name of the row with the problem; empty if the problem does not concern a row.
	Server drawbridge.ServerID
	Text   string
}

// String returns "path:line: text".
func (w Warning) String() string { return w.Origin.String() + ": " + w.Text }

// A Configuration is the result of Load.
type Configuration struct {
	// Servers are the rows in the order in which Load read them. Two rows have the same name only in two cases: one of
	// them is refused, or exactly one is a project row without an approval. At most one row of a name is Idle.
	Servers []Server
	// Shadowed are the rows that are not used, because Servers contains a row of the same name that was read earlier.
	Shadowed []Server
	Warnings []Warning
	// Settings are the settings of the user-level drawbridge.toml; zero fields mean their defaults.
	Settings Settings
	// Sources are the paths of the files that were read, in order.
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

// ServerHashes returns the Hash of each row: the key of stored tool lists and approvals.
func ServerHashes(rows []Server) (hashes []string) {
	for _, row := range rows {
		hashes = append(hashes, row.Hash)
	}
	return hashes
}

// Lookup returns the row that is used for a name: the row that may be mounted, otherwise the first row of that name.
// The second result is false if the name is not configured.
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

// Suggest returns the configured name most similar to id; empty if no name is similar.
func (s Configuration) Suggest(id drawbridge.ServerID) drawbridge.ServerID {
	known := make([]string, 0, len(s.Servers))
	for _, row := range s.Servers {
		known = append(known, string(row.ID))
	}
	return drawbridge.ServerID(configfile.Nearest(string(id), known))
}

// Options locate the files that Load reads. The zero value means the files that a drawbridge command without options
// reads.
type Options struct {
	// Paths are the values of --mcp; if there are any, Load reads these paths instead of discovering files. Each value
	// is split at commas, unless a file of that name exists. A path may be a file or a directory. A directory is
	// searched as if it were the working directory, but the rows of its files need no approval.
	Paths []string
	// Dir is the working directory; empty means the process's.
	Dir string
	// SettingsFile is the path of a file that replaces the user-level drawbridge.toml; the file must exist.
	// LoadSettings, LoadRules and LockfilePath use it. Load uses it only if Paths is not empty. An empty SettingsFile
	// means the user-level file.
	SettingsFile string
	// Home and XDGConfig are the home and configuration directories; empty means the value from the environment.
	Home, XDGConfig string
	// AppData is the roaming profile directory on Windows; empty means the value from the environment. Other systems
	// ignore it.
	AppData string
	// Approved reports whether a person approved a row. Load calls it for each valid row of a project. If Approved is
	// nil, no row is approved.
	Approved func(Server) bool
	// LookupEnv returns the value of an environment variable; nil means os.LookupEnv.
	LookupEnv func(string) (string, bool)
	// KeychainValue returns a stored secret by its name. ScanImports uses it to compare rows: a reference to a stored
	// secret equals the same secret in plain text. If KeychainValue is nil, references are not resolved.
	KeychainValue func(name string) (string, bool)
}
