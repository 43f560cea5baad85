package mcptest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A Record is one thing that a talker heard or did.
type Record struct {
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

// ReadRecord reads the record of a talker: what was written to it so far.
func ReadRecord(path string) ([]Record, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []Record
	for line := range bytes.Lines(text) {
		var r Record
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

// Heard says whether the record is a message of that method.
func (r Record) Heard(method string) bool {
	return r.Event == "heard" && wire.GetText(r.Message, "method") == method
}

// A recorder writes records to a file. The nil recorder writes none.
type recorder struct {
	life string
	file *os.File
}

func openRecord(path, life string) (*recorder, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return &recorder{life, file}, err
}

func (r *recorder) close() {
	if r != nil {
		_ = r.file.Close()
	}
}

func (r *recorder) event(what string, call int64, name string) {
	r.write(Record{Event: what, Call: call, Name: name})
}

func (r *recorder) message(message []byte, header http.Header) {
	r.write(Record{Event: "heard", Message: message, Header: header})
}

// write appends one record in one write, so that several processes can share the file.
func (r *recorder) write(one Record) {
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
