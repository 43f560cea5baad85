package agentrpc

import (
	"context"
	"io"

	"github.com/drawbridge-mcp/drawbridge/agent"
)

// A Host opens sessions of the agent. Its methods may be called from several goroutines.
type Host interface {
	// Hold opens a session, calls work with it, and closes it when work returns. If the context of work ends, the session
	// cannot go on. The error is that of opening the session, or that of work.
	Hold(ctx context.Context, o Opening, work func(ctx context.Context, s Opened) error) error
	// Models returns the names of the models that a session can use, as "provider/name".
	Models(ctx context.Context) ([]string, error)
	// FindModel returns the model with a name.
	FindModel(ctx context.Context, name string) (agent.Model, error)
	// Sessions returns the sessions that were held in a directory, the newest first. An empty directory means that of the
	// host.
	Sessions(ctx context.Context, dir string) ([]ListedSession, error)
}

// A ListedSession is a session that can be opened.
type ListedSession struct {
	// Dir is the working directory of the session.
	Dir string
	agent.SessionInfo
}

// An Opening says which session a client asks for.
type Opening struct {
	// Dir is the working directory; empty means that of the host.
	Dir string
	// Session is the whole ID of a session that goes on; empty means a new session, or the one that the host chose.
	Session string
	// Servers are MCP servers that the client wants the session to have. A person has approved none of them. A host that
	// does not use one says so in Opened.Notices, or returns an error.
	Servers []ClientServer
	// Elicitation reports that the client can ask its person for the values of a form, or to open a page.
	Elicitation bool
}

// A ClientServer is an MCP server that a client sent. It is a row that came from a conversation: its values are not
// checked, and those of Env and Headers may be secret.
type ClientServer struct {
	Name string
	// Transport is "stdio", "http" or "sse".
	Transport string
	// Command, Args and Env start a program, for "stdio".
	Command string
	Args    []string
	Env     []Variable
	// URL and Headers reach a server, for the other transports.
	URL     string
	Headers []Variable
}

// A Variable is a variable of the environment, or a header of HTTP.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// An Opened session is one that [Host.Hold] opened.
type Opened struct {
	Session *agent.Session
	History agent.History
	// File is the path of the history; empty if it is not in a file.
	File string
	// Notices are texts that the client shows when the session is open.
	Notices []string
}

// Pipes are the two directions of a connection. If one of them is an io.Closer, it is closed when the context ends, so
// that a blocked read or write ends.
type Pipes struct {
	In  io.Reader
	Out io.Writer
}
