package mcptest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A TalkerEvent is one thing that a talker heard or did.
type TalkerEvent struct {
	// Life tells one life of the server from the next: its process id, or a number where it has no process of its own.
	Life string
	// Event is "heard" for a message, which is then Message, with Header where it came over HTTP; else what happened:
	// "start", "begin" and "answered", "asked" or "cancelled" for the begin and end of a turn, "has its answers" for a
	// turn of the tool ask, "stop".
	Event string
	// Call numbers the turns of a life; Name is the tool, prompt or resource.
	Call    int64           `json:",omitempty"`
	Name    string          `json:",omitempty"`
	Message json.RawMessage `json:",omitempty"`
	Header  http.Header     `json:",omitempty"`
}

// ReadTalkerEvents reads the record of a talker: what was written to it so far.
func ReadTalkerEvents(path string) ([]TalkerEvent, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []TalkerEvent
	for line := range bytes.Lines(text) {
		var r TalkerEvent
		if line[len(line)-1] != '\n' {
			break // it is being written
		}
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, err
}

// Heard reports whether the event is a received message of that method.
func (r TalkerEvent) Heard(method string) bool {
	return r.Event == "heard" && rawjson.GetString(r.Message, "method") == method
}

// A eventRecorder writes records to a file. The nil recorder writes none.
type eventRecorder struct {
	life string
	file *os.File
}

func openEventRecorder(path, life string) (*eventRecorder, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return &eventRecorder{life, file}, err
}

func (r *eventRecorder) close() {
	if r != nil {
		_ = r.file.Close()
	}
}

func (r *eventRecorder) event(what string, call int64, name string) {
	r.write(TalkerEvent{Event: what, Call: call, Name: name})
}

func (r *eventRecorder) message(message []byte, header http.Header) {
	r.write(TalkerEvent{Event: "heard", Message: message, Header: header})
}

// write appends one record in one write, so that several processes can share the file.
func (r *eventRecorder) write(one TalkerEvent) {
	if r == nil {
		return
	}
	one.Life = r.life
	line, err := json.Marshal(one)
	if err != nil {
		return // it was no JSON
	}
	_, _ = r.file.Write(append(line, '\n'))
}
