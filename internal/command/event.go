package command

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// An EventKind is the kind of an event.
type EventKind string

// The kinds of event.
const (
	// StartingEvent: the request waits for the start of Server.
	StartingEvent EventKind = "starting"
	// ProgressEvent: the called tool sent Progress.
	ProgressEvent EventKind = "progress"
	// ApprovalEvent: the request waits for the approval of a person.
	ApprovalEvent EventKind = "approval"
)

// An Event reports what a request waits for.
type Event struct {
	Kind EventKind `json:"event"`
	// Server, Seconds, Program and First belong to StartingEvent: the server, how long the request has waited for its
	// start, the base name of its program, and whether it was never listed before.
	Server  drawbridge.ServerID `json:"server,omitempty"`
	Seconds int                 `json:"seconds,omitempty"`
	Program string              `json:"program,omitempty"`
	First   bool                `json:"first,omitempty"`
	// Progress holds the params of the server's progress notification.
	Progress *Progress `json:"progress,omitempty"`
	// Approval is the waiting call.
	Approval *Approval `json:"approval,omitempty"`
}

// Progress is the progress of a tool. Total is 0 where the server does not know it.
type Progress struct {
	Progress float64 `json:"progress"`
	Total    float64 `json:"total,omitempty"`
	Message  string  `json:"message,omitempty"`
}

// An Approval is a call that waits for the approval of a person, until a moment.
type Approval struct {
	ID    string                  `json:"id"`
	Until time.Time               `json:"until"`
	Call  gateway.ApprovalDetails `json:"call"`
}

// startingInterval is how often a start is reported.
const startingInterval = time.Second

// A waitReporter reports what a request waits for. It is the peer of its call.
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

// close ends the events.
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

// watchStarts reports, until stop is called, the start of a server; for an empty id, of every server that was never
// listed.
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

// starting returns an event for each server that is starting.
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

// Notify reports the progress of the tool; every other notification is dropped.
func (w *waitReporter) Notify(_ context.Context, method string, params json.RawMessage) error {
	var p Progress
	if method == mcp.NoteProgress && json.Unmarshal(params, &p) == nil {
		p.Message = rawjson.GetString(params, "message")
		w.send(Event{Kind: ProgressEvent, Progress: &p})
	}
	return nil
}

// Request refuses every request of a server: a command line answers none.
func (w *waitReporter) Request(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
	return nil, &drawbridge.Fault{Kind: drawbridge.BridgeFault, Code: drawbridge.NotFound,
		Step: "ask the command line: it does not answer " + method}
}

// ApprovalPending reports that the call waits for a person.
func (w *waitReporter) ApprovalPending(id string, until time.Time, call gateway.ApprovalDetails) {
	w.send(Event{Kind: ApprovalEvent, Approval: &Approval{ID: id, Until: until, Call: call}})
}
