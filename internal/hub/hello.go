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
	"github.com/drawbridge-mcp/drawbridge/internal/command"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// protocolRevision is the version of the control protocol, which docs/hub.md describes. A hub refuses all other
// versions. Adding optional members or verbs does not change the version.
const protocolRevision = 2

// The verbs of the control protocol.
const (
	wantAttach = "attach" // serve an MCP client
	wantHTTP   = "http"   // serve on the listener that the sender passes next
	wantState  = "state"  // return the State
	wantReload = "reload" // read the configuration again
	wantLogs   = "logs"   // return the lines of a server's standard error
	// wantReconnect closes the connections of a server and connects again.
	wantReconnect = "reconnect"
	// wantNotifications returns the notifications of a server.
	wantNotifications = "notifications"
	// wantCall carries out a request of the command line.
	wantCall = "call"
	// wantApprove sends the decision on a call that waits for approval.
	wantApprove = "approve"
	// wantSubscribe returns changes of the hub's state as they occur.
	wantSubscribe = "subscribe"
)

// A hello is the first line that a process sends on a connection to the hub, a request of the control protocol. It
// contains the protocol version, the verb, the sender and the paths of the sender's configuration.
type hello struct {
	Revision int    `json:"drawbridge"`
	Want     string `json:"want"`
	PID      int    `json:"pid"`
	// Host is the name of the program that started the sender; empty if unknown.
	Host    string   `json:"host,omitempty"`
	Paths   []string `json:"paths,omitempty"`
	Dir     string   `json:"dir,omitempty"`
	Naming  string   `json:"naming,omitempty"`
	Environ []string `json:"environ,omitempty"`
	Token   string   `json:"token,omitempty"`
	Origins []string `json:"origins,omitempty"`
	// PassesFiles is set if the sender passes three open files after the welcome: the client's input, the client's
	// output and the shared ring.
	PassesFiles bool `json:"lends,omitempty"`
	// HubNumber is the number of hubs that have served the client before this hub.
	HubNumber int `json:"turn,omitempty"`
	// Server is for the verbs logs, reconnect and notifications: the name of the server. Follow is for logs.
	Server string `json:"server,omitempty"`
	Follow bool   `json:"follow,omitempty"`
	// Relist is for the verb reload. If it is set, the hub lists the servers in Servers again before the reload, or all
	// servers if Servers is empty.
	Relist  bool                  `json:"relist,omitempty"`
	Servers []drawbridge.ServerID `json:"servers,omitempty"`
	// Request is for the verb call.
	Request *command.Request `json:"request,omitempty"`
	// Approval is for the verb approve.
	Approval *ApprovalAnswer `json:"approval,omitempty"`
	// Profile and Millis are for the verb profile: the kind of profile, and the duration of a CPU profile in
	// milliseconds.
	Profile ProfileKind `json:"profile,omitempty"`
	Millis  int64       `json:"millis,omitempty"`
}

// gatewayConfig returns the configuration of the sender's gateway. That is base with the configuration paths, the
// naming style and the environment of the sender, and without token and origins.
func (h hello) gatewayConfig(base gateway.Config) gateway.Config {
	base.Paths, base.Dir, base.Naming = h.Paths, h.Dir, deck.NamingStyle(h.Naming)
	base.Environ, base.LookupEnv = h.Environ, environLookup(h.Environ)
	base.Token, base.Origins = "", nil
	return base
}

// environLookup returns a function that looks up variables in environ. If a name has several entries, the last one is
// used.
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

// A welcome is the hub's response to a hello: the hub's process id, or the reason for a refusal.
type welcome struct {
	// Revision is the hub's version of the protocol. It is 0 if the hub is so old that it does not send its version,
	// which is then 2 or less.
	Revision int                  `json:"drawbridge,omitempty"`
	PID      int                  `json:"pid,omitempty"`
	Error    string               `json:"error,omitempty"`
	Code     drawbridge.FaultCode `json:"code,omitempty"`
}

// helloTime is the time limit for the exchange of hello and welcome.
const helloTime = 10 * time.Second

// send sends the hello and reads the welcome. The error is a *drawbridge.Fault if the hub refuses, and errNoHub if the
// hub ends before it responds.
func (h hello) send(conn *net.UnixConn) (*lineConn, error) {
	h.Revision = protocolRevision
	// The length of a line is not limited here: the hub has limited the messages of servers.
	l := &lineConn{conn: conn, in: mcp.NewLineReader(conn, math.MaxInt)}
	_ = conn.SetDeadline(time.Now().Add(helloTime))
	if err := l.writeJSON(h); err != nil {
		return nil, errNoHub
	}
	answer, err := l.in.Next()
	if err != nil {
		return nil, errNoHub // the hub ended
	}
	_ = conn.SetDeadline(time.Time{})
	return l, readWelcome(answer)
}

// readWelcome parses a welcome. If the hub refuses, it returns the reason as a *drawbridge.Fault.
func readWelcome(text []byte) error {
	var w welcome
	if err := json.Unmarshal(text, &w); err != nil {
		return &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.ServerError,
			Step: "read the answer of the hub: invalid JSON", Next: "end the hub (drawbridge ps shows it)"}
	}
	if w.Error != "" {
		return &drawbridge.Fault{Kind: drawbridge.Backend, Code: w.Code, Step: w.Error}
	}
	return nil
}

// readHello reads the hello on a new connection. The returned lineConn is not nil if a line was read, even if the line
// is not a valid hello.
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

// parseHello parses a hello and checks its version and its verb. The error is a *drawbridge.Fault with which the hub
// refuses the hello.
func parseHello(text []byte) (hello, error) {
	var h hello
	if err := json.Unmarshal(text, &h); err != nil {
		return hello{}, invalidInputFault("read the request to the hub: not a hello of the control protocol")
	}
	if h.Revision != protocolRevision {
		return hello{}, invalidInputFault(fmt.Sprintf("the hub speaks control protocol %d and this program %d: "+
			"end the hub first (drawbridge ps shows it)", protocolRevision, h.Revision))
	}
	switch h.Want {
	case wantAttach, wantHTTP, wantState, wantReload, wantLogs, wantReconnect, wantCall, wantApprove, wantSubscribe,
		wantProfile, wantNotifications:
		return h, nil
	}
	return hello{}, invalidInputFault(
		fmt.Sprintf(unknownVerbText+" %.40q: use the version of drawbridge that runs the hub", h.Want))
}

// unknownVerbText is the beginning of the text with which a hub refuses an unknown verb. It is the same in every
// release, because isUnknownVerb looks for it.
const unknownVerbText = "the hub does not know the request"

func invalidInputFault(step string) error {
	return &drawbridge.Fault{Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: step}
}

// sendWelcome responds to a hello with the hub's process id, or with the refusal.
func (l *lineConn) sendWelcome(pid int, refusal error) error {
	w := welcome{Revision: protocolRevision, PID: pid}
	if refusal != nil {
		w = welcome{Revision: protocolRevision, Error: refusal.Error(), Code: drawbridge.AsFault(refusal).Code}
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
