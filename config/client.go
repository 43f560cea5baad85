package config

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge/internal/clientconfig"
)

// ClientEntryName is the name of Drawbridge's entry in a client's configuration.
const ClientEntryName = "drawbridge"

// A ClientEntry is the entry in a client's configuration that starts Drawbridge as a stdio server.
type ClientEntry struct {
	// Command is the absolute path of the program. Args are its arguments: "serve", then options.
	Command string
	Args    []string
	// Env lists the environment variables that the entry sets for Drawbridge. No name occurs twice.
	Env []NameValue
}

// A Client is a program that can use Drawbridge as one of its MCP servers.
type Client struct {
	// ID is the client's name in the command "drawbridge connect". Title is the name that is shown to people.
	ID, Title string

	dialect clientconfig.Client
}

// Clients returns the programs whose configuration "drawbridge connect" can change.
func Clients() []Client {
	var all []Client
	for _, c := range clientconfig.Clients() {
		all = append(all, Client{c.ID, c.Title, c})
	}
	return all
}

// LookupClient returns the client with the given ID; the second result is false if no such client exists.
func LookupClient(id string) (Client, bool) {
	for _, c := range Clients() {
		if c.ID == id {
			return c, true
		}
	}
	return Client{}, false
}

// Path returns the path of the client's user-level configuration file, whether the file exists or not. If the home
// directory is unknown, the result is not an absolute path and must not be used; PlanConnect then returns an error.
func (c Client) Path(o Options) string {
	at, err := clientDirs(o)
	if err != nil {
		return ""
	}
	return c.dialect.ConfigPath(at)
}

// entryPath returns the member names that lead to the entry of the named server in the client's file.
func (c Client) entryPath(name string) []string {
	return append(append([]string{}, c.dialect.ServersPath...), name)
}

func clientDirs(o Options) (clientconfig.ClientDirs, error) {
	l, err := newLoader(o)
	if err != nil {
		return clientconfig.ClientDirs{}, err
	}
	return clientconfig.ClientDirs{GOOS: l.OS, Home: l.Home, Config: l.Config, Lookup: l.Lookup}, nil
}

// entryJSON returns Drawbridge's entry in the client's format.
func (c Client) entryJSON(e ClientEntry) (json.RawMessage, error) {
	var env map[string]string
	for _, p := range e.Env {
		if env == nil {
			env = map[string]string{}
		}
		env[p.Name] = p.Value
	}
	return c.dialect.EntryJSON(clientconfig.ServerEntry{Name: ClientEntryName, Command: e.Command,
		Args: e.Args, Env: env})
}
