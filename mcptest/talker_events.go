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

// A TalkerEvent is a message that a talker received, or an action of the talker.
type TalkerEvent struct {
	// Life identifies one run of the server between its start and its end. It is the process ID, or a number if the
	// talker has no process of its own.
	Life string
	// Event is "heard" for a received message. Message is then the message, and Header its HTTP header, if any. "start"
	// and "stop" are the start and the end of the server. A turn, that is the handling of a request, has "begin" and
	// then "answered", "asked" or "cancelled". "has its answers" means that the tool ask has received all answers.
	Event string
	// Call is the number of the turn since the start of the server. Name is the tool, prompt or resource.
	Call    int64           `json:",omitempty"`
	Name    string          `json:",omitempty"`
	Message json.RawMessage `json:",omitempty"`
	Header  http.Header     `json:",omitempty"`
}

// ReadTalkerEvents returns the events that a talker has written to the record at path so far.
func ReadTalkerEvents(path string) ([]TalkerEvent, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []TalkerEvent
	for line := range bytes.Lines(text) {
		var r TalkerEvent
		if line[len(line)-1] != '\n' {
			break // the line is still being written
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

// An eventRecorder writes events to a file. A nil recorder writes nothing.
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

// write appends one event in a single write, so that several processes can share the file.
func (r *eventRecorder) write(one TalkerEvent) {
	if r == nil {
		return
	}
	one.Life = r.life
	line, err := json.Marshal(one)
	if err != nil {
		return // the message was not JSON
	}
	_, _ = r.file.Write(append(line, '\n'))
}
