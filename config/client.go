package config

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge/config/client"
)

// ClientEntry is the name of our entry in a client's configuration.
const ClientEntry = "drawbridge"

// An Entry is how a client starts Drawbridge: a server on stdio.
type Entry struct {
	// Command is the absolute path of the program, Args what it is given: "serve", and more.
	Command string
	Args    []string
	// Env adds to what the client gives its servers; names are distinct.
	Env []Pair
}

// A Client is a program that can have Drawbridge as one of its MCP servers.
type Client struct {
	// ID is what "drawbridge connect" calls it, Title what people do.
	ID, Title string

	known client.Client
}

// Clients lists the programs that Drawbridge can be connected to.
func Clients() []Client {
	var all []Client
	for _, c := range client.All() {
		all = append(all, Client{c.ID, c.Title, c})
	}
	return all
}

// LookupClient gives the client of an id; false where there is none.
func LookupClient(id string) (Client, bool) {
	for _, c := range Clients() {
		if c.ID == id {
			return c, true
		}
	}
	return Client{}, false
}

// Path is the client's user-level configuration file, whether it is there or not. Without a home it is relative, and
// of no use; the error of PlanConnect says so.
func (c Client) Path(o Options) string {
	at, err := placesOf(o)
	if err != nil {
		return ""
	}
	return c.known.Path(at)
}

// at is the path of a server in the client's file.
func (c Client) at(name string) []string {
	return append(append([]string{}, c.known.Member...), name)
}

func placesOf(o Options) (client.Places, error) {
	l, err := newLoader(o)
	if err != nil {
		return client.Places{}, err
	}
	return client.Places{GOOS: l.OS, Home: l.Home, Config: l.Config, Lookup: l.Lookup}, nil
}

// rowJSON is our entry as the client writes it.
func (c Client) rowJSON(e Entry) (json.RawMessage, error) {
	var env map[string]string
	for _, p := range e.Env {
		if env == nil {
			env = map[string]string{}
		}
		env[p.Name] = p.Value
	}
	return c.known.Row(client.Entry{Name: ClientEntry, Command: e.Command, Args: e.Args, Env: env})
}
