package command

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// An EventKind is the kind of an event.
type EventKind string

// The kinds of event.
const (
	// StartingEvent means that the request waits for the start of Server.
	StartingEvent EventKind = "starting"
	// ProgressEvent means that the called tool sent a progress notification.
	ProgressEvent EventKind = "progress"
	// ApprovalEvent means that the call waits for the approval of a person.
	ApprovalEvent EventKind = "approval"
	// AgentOpenEvent means that the session of an agent is open.
	AgentOpenEvent EventKind = "agent-open"
	// AgentCallEvent reports something about a call of an agent.
	AgentCallEvent EventKind = "agent-call"
)

// An Event reports what a request waits for.
type Event struct {
	Kind EventKind `json:"event"`
	// Server, Seconds, Program and First are set for a StartingEvent. Server is the server that starts. Seconds is how
	// long the request has waited for the start. Program is the base name of the server's program, if it has one. First
	// is set if no list was ever received from the server, so that its program may have to be downloaded.
	Server  drawbridge.ServerID `json:"server,omitempty"`
	Seconds int                 `json:"seconds,omitempty"`
	Program string              `json:"program,omitempty"`
	First   bool                `json:"first,omitempty"`
	// Progress is set for a ProgressEvent: the params of the server's progress notification.
	Progress *Progress `json:"progress,omitempty"`
	// Approval is set for an ApprovalEvent: the call that waits.
	Approval *Approval `json:"approval,omitempty"`
	// Update is set for an AgentCallEvent.
	Update *agent.CallUpdate `json:"update,omitempty"`
}

// Progress is the progress of a tool. Total is 0 if the server sent no total.
type Progress struct {
	Progress float64 `json:"progress"`
	Total    float64 `json:"total,omitempty"`
	Message  string  `json:"message,omitempty"`
}

// An Approval is a call that waits for a person's approval. ID identifies the call. Without an answer, the call is
// refused at Until.
type Approval struct {
	ID    string                  `json:"id"`
	Until time.Time               `json:"until"`
	Call  gateway.ApprovalDetails `json:"call"`
}

// startingInterval is the interval between two StartingEvents for a server.
const startingInterval = time.Second

// A waitReporter sends the events of one request. It is also the drawbridge.Peer of the request's call: it receives the
// notifications that the server sends during the call.
type waitReporter struct {
	g    *gateway.Gateway
	work sync.WaitGroup

	mu     sync.Mutex // held while event is called
	event  func(Event)
	closed bool
}

var (
	_ drawbridge.Peer          = (*waitReporter)(nil)
	_ gateway.ApprovalObserver = (*waitReporter)(nil)
)

func newWaitReporter(g *gateway.Gateway, event func(Event)) *waitReporter {
	return &waitReporter{g: g, event: event, closed: event == nil}
}

// close stops the events and waits until the goroutines of watchStarts have returned.
func (w *waitReporter) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.work.Wait()
}

func (w *waitReporter) send(e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.event(e)
	}
}

// watchStarts sends a StartingEvent every startingInterval for each selected server that is starting, until the caller
// calls stop. It selects the server with the given id; an empty id selects all servers that were never listed.
func (w *waitReporter) watchStarts(id drawbridge.ServerID) (stop func()) {
	done := make(chan struct{})
	began := time.Now()
	w.work.Go(func() {
		tick := time.NewTicker(startingInterval)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			for _, e := range w.starting(id) {
				e.Seconds = int(time.Since(began).Seconds())
				w.send(e)
			}
		}
	})
	return func() { close(done) }
}

// starting returns a StartingEvent for each selected server that is starting now. It selects the server with the given
// id; an empty id selects all servers that were never listed.
func (w *waitReporter) starting(id drawbridge.ServerID) (all []Event) {
	set := w.g.Config()
	for _, s := range w.g.Status() {
		if s.Phase != drawbridge.Connecting || id != "" && s.Server != id || id == "" && !s.Listed.IsZero() {
			continue
		}
		row, _ := set.Lookup(s.Server)
		program := ""
		if row.Command != "" {
			program = filepath.Base(row.Command)
		}
		all = append(all, Event{Kind: StartingEvent, Server: s.Server, Program: program, First: s.Listed.IsZero()})
	}
	return all
}

// Notify sends a ProgressEvent for a progress notification of the tool. It drops every other notification.
func (w *waitReporter) Notify(_ context.Context, method string, params json.RawMessage) error {
	var p Progress
	if method == mcp.NoteProgress && json.Unmarshal(params, &p) == nil {
		p.Message = rawjson.GetString(params, "message")
		w.send(Event{Kind: ProgressEvent, Progress: &p})
	}
	return nil
}

// Request returns a fault for every request of a server, because the command line answers none.
func (w *waitReporter) Request(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
	return nil, &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound,
		Step: "ask the command line: it does not answer " + method}
}

// ApprovalPending sends an ApprovalEvent for a call that waits for a person's approval.
func (w *waitReporter) ApprovalPending(id string, until time.Time, call gateway.ApprovalDetails) {
	w.send(Event{Kind: ApprovalEvent, Approval: &Approval{ID: id, Until: until, Call: call}})
}
