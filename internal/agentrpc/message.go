package agentrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// The codes of errors.
const (
	codeParse         = -32700
	codeRequest       = -32600
	codeMethod        = -32601
	codeParams        = -32602
	codeInternal      = -32603
	codeFailed        = -32000
	codeNotFound      = -32002
	malformedLineText = "malformed JSON request line"
)

// A message is one line: a request, a notification or a response.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

// An rpcError is the error of a response.
type rpcError struct {
	Code    int        `json:"code"`
	Message string     `json:"message"`
	Data    *errorData `json:"data,omitempty"`
}

// errorData are facts about an error.
type errorData struct {
	Method string `json:"method,omitempty"`
	// Outcome is how the run ended.
	Outcome string `json:"outcome,omitempty"`
}

func (e *rpcError) Error() string { return e.Message }

// unknownMethod is the error for a method that does not exist.
func unknownMethod(method string) *rpcError {
	return &rpcError{codeMethod, "unknown method", &errorData{Method: method}}
}

func invalidParams(text string) *rpcError { return &rpcError{Code: codeParams, Message: text} }

// isResponse reports whether m answers a request of this side.
func (m message) isResponse() bool { return m.Method == "" }

// parseMessage reads a line. The ID of the message counts with an error too, if the line has a valid one.
func parseMessage(line []byte) (m message, problem *rpcError) {
	if rawjson.Valid(line) != nil {
		return m, &rpcError{Code: codeParse, Message: malformedLineText}
	}
	invalid := func(text string) (message, *rpcError) {
		return message{ID: m.ID}, &rpcError{Code: codeRequest, Message: text}
	}
	if line[rawjson.SkipSpace(line, 0)] != '{' {
		return invalid("the line is not a JSON object")
	}
	if id := rawjson.Get(line, "id"); len(id) > 0 && string(id) != "null" {
		if first := id[0]; first != '"' && first != '-' && (first < '0' || first > '9') {
			return invalid("the id is neither a string nor a number")
		}
		m.ID = bytes.Clone(id)
	}
	var version, method string
	for name, into := range map[string]*string{"jsonrpc": &version, "method": &method} {
		raw := rawjson.Get(line, name)
		if raw == nil {
			continue
		}
		text, ok := rawjson.DecodeString(raw)
		if !ok {
			return invalid(name + " is not a string")
		}
		*into = text
	}
	result, failure := rawjson.Get(line, "result"), rawjson.Get(line, "error")
	switch {
	case version != "2.0":
		return invalid(`jsonrpc is not "2.0"`)
	case method == "" && (m.ID == nil || result == nil && failure == nil):
		return invalid("the line is neither a request nor a response")
	}
	m.Version, m.Method = version, method
	m.Params, m.Result = bytes.Clone(rawjson.Get(line, "params")), bytes.Clone(result)
	if failure != nil {
		m.Error = &rpcError{Code: codeInternal, Message: rawjson.GetString(failure, "message")}
	}
	return m, nil
}

// decodeParams reads the params of a request.
func decodeParams(raw json.RawMessage, into any) *rpcError {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return invalidParams("the params do not have the form of this method")
	}
	return nil
}

// errLineTooLong is the error of a line that is longer than maxLine.
var errLineTooLong = errors.New("the line is too long")

// A lineReader reads lines of at most max bytes.
type lineReader struct {
	in interface {
		ReadSlice(delim byte) ([]byte, error)
	}
	max int
}

// read returns the next line that is not empty. After errLineTooLong, the reader stands at the next line. A last line
// without a line feed counts.
func (r lineReader) read() ([]byte, error) {
	for {
		line, err := r.readAny()
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
}

func (r lineReader) readAny() (line []byte, err error) {
	long := false
	for {
		piece, err := r.in.ReadSlice('\n')
		if long = long || len(line)+len(piece) > r.max+1; !long {
			line = append(line, piece...)
		} else {
			line = nil
		}
		switch {
		case errors.Is(err, errBufferFull):
			continue
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, errLineTooLong
		case err == nil, errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		}
		return nil, err
	}
}

// encodeLine returns v as one line. U+2028 and U+2029 are escaped: some readers take them for the end of a line.
func encodeLine(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	line := bytes.ReplaceAll(b.Bytes(), []byte("\u2028"), []byte(`\u2028`))
	return bytes.ReplaceAll(line, []byte("\u2029"), []byte(`\u2029`)), nil
}
