package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// protocolRevision is that of what hub and shim say to each other. Those of different ones do not work together.
const protocolRevision = 2

// What a process may want of the hub.
const (
	wantAttach = "attach" // pass the messages of an MCP client
	wantHTTP   = "http"   // serve on a listener that comes next
	wantState  = "state"  // say how everything is
	wantReload = "reload" // read the configuration again
	wantLogs   = "logs"   // say what a server wrote to standard error
)

// A hello is the first line of whoever comes to the hub: who it is, what it wants, and where its configuration is.
type hello struct {
	Revision int    `json:"drawbridge"`
	Want     string `json:"want"`
	PID      int    `json:"pid"`
	// Host is the name of the program that started the shim; empty where that is not known.
	Host    string   `json:"host,omitempty"`
	Paths   []string `json:"paths,omitempty"`
	Dir     string   `json:"dir,omitempty"`
	Naming  string   `json:"naming,omitempty"`
	Environ []string `json:"environ,omitempty"`
	Token   string   `json:"token,omitempty"`
	Origins []string `json:"origins,omitempty"`
	// PassesFiles says that the client's output comes next, Turn how many hubs the client had before.
	PassesFiles bool `json:"lends,omitempty"`
	HubNumber   int  `json:"turn,omitempty"`
	// Server and Follow are for logs.
	Server string `json:"server,omitempty"`
	Follow bool   `json:"follow,omitempty"`
	// Relist has servers listed anew before a reload: the Servers, or all where there are none.
	Relist  bool                  `json:"relist,omitempty"`
	Servers []drawbridge.ServerID `json:"servers,omitempty"`
}

// gatewayConfig is where the hub looks for what the shim has configured.
func (h hello) gatewayConfig(base gateway.Config) gateway.Config {
	base.Paths, base.Dir, base.Naming = h.Paths, h.Dir, deck.NamingStyle(h.Naming)
	base.Environ, base.LookupEnv = h.Environ, environLookup(h.Environ)
	base.Token, base.Origins = "", nil
	return base
}

// environLookup finds variables in an environment; of one that is there twice the last counts.
func environLookup(environ []string) func(string) (string, bool) {
	values := make(map[string]string, len(environ))
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		values[name] = value
	}
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}

// A welcome is the hub's first line: its process, or why it does not do what is wanted.
type welcome struct {
	PID   int                  `json:"pid,omitempty"`
	Error string               `json:"error,omitempty"`
	Code  drawbridge.FaultCode `json:"code,omitempty"`
}

// helloTime bounds what the two ends say before a conversation begins.
const helloTime = 10 * time.Second

// send says what is wanted on a new connection. The error is a *drawbridge.Fault where the hub refuses.
func (h hello) send(conn *net.UnixConn) (*lineConn, error) {
	h.Revision = protocolRevision
	// what servers said was bounded where it came in
	l := &lineConn{conn: conn, in: mcp.NewLineReader(conn, math.MaxInt)}
	_ = conn.SetDeadline(time.Now().Add(helloTime))
	if err := l.writeJSON(h); err != nil {
		return nil, errNoHub
	}
	answer, err := l.in.Next()
	if err != nil {
		return nil, errNoHub // it ends
	}
	_ = conn.SetDeadline(time.Time{})
	return l, readWelcome(answer)
}

// readWelcome reads the hub's first line. The error is its refusal, as a *drawbridge.Fault.
func readWelcome(text []byte) error {
	var w welcome
	if err := json.Unmarshal(text, &w); err != nil {
		return &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.ServerError,
			Step: "the answer of the hub is not understood"}
	}
	if w.Error != "" {
		return &drawbridge.Fault{Kind: drawbridge.Backend, Code: w.Code, Step: w.Error}
	}
	return nil
}

// readHello reads the first line of whoever comes.
func readHello(conn *net.UnixConn) (hello, *lineConn, error) {
	l := &lineConn{conn: conn, in: mcp.NewLineReader(conn, 0)}
	_ = conn.SetDeadline(time.Now().Add(helloTime))
	defer func() { _ = conn.SetDeadline(time.Time{}) }()
	text, err := l.in.Next()
	if err != nil {
		return hello{}, nil, err
	}
	h, err := parseHello(text)
	return h, l, err
}

// parseHello reads the first line of a process. The error is a *drawbridge.Fault for the other end to read.
func parseHello(text []byte) (hello, error) {
	var h hello
	if err := json.Unmarshal(text, &h); err != nil {
		return hello{}, invalidInputFault("this is no hello of drawbridge", nil)
	}
	if h.Revision != protocolRevision {
		return hello{}, invalidInputFault(
			"another version of drawbridge is the hub: end it first (drawbridge ps shows it)", nil)
	}
	switch h.Want {
	case wantAttach, wantHTTP, wantState, wantReload, wantLogs:
		return h, nil
	}
	return hello{}, invalidInputFault(fmt.Sprintf("the hub does not know what %.40q is", h.Want), nil)
}

func invalidInputFault(step string, err error) error {
	return &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: step, Err: err}
}

// sendWelcome answers the first line.
func (l *lineConn) sendWelcome(pid int, refusal error) error {
	w := welcome{PID: pid}
	if refusal != nil {
		w = welcome{Error: refusal.Error(), Code: drawbridge.AsFault(refusal).Code}
		if _, ok := errors.AsType[*drawbridge.Fault](refusal); !ok {
			w.Error = "the hub: internal error"
		}
	}
	return l.writeJSON(w)
}

// writeJSON writes a value as one line.
func (l *lineConn) writeJSON(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return l.writeLine(text)
}
