package mcptest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// WriteScript writes a script for the named server "raw" to a temporary file of the test, and returns the path.
//
// A script is a JSON object. The name of a member is a method, or a method followed by the name or URI in its params:
// "tools/call", "tools/call echo", "resources/read file:///a". The value is the result that is sent, byte for byte.
// These values have a special meaning:
//
//   - {"$error": OBJECT} answers with that error object,
//   - {"$before": [MESSAGE…], "$result": VALUE} first sends whole messages, unchanged,
//   - {"$ask": MESSAGE, "$result": VALUE} first sends a request, and sends the result after its response,
//   - "$params" as a value or as a $result returns the request's params, as {"content":[],"params":PARAMS},
//   - null never answers.
//
// Without a member for "initialize", "ping" or "tools/list" in the script, the server answers that method honestly.
func WriteScript(t testing.TB, script string) (path string) {
	t.Helper()
	if err := rawjson.Valid([]byte(script)); err != nil {
		t.Fatalf("mcptest: script: %v", err)
	}
	path = filepath.Join(t.TempDir(), "script.json")
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// runScript runs the named server "raw". Its arguments are the file with the script, and an optional file to which
// every received message is written.
func runScript(args serverArgs) int {
	script, err := os.ReadFile(args.text(0, ""))
	if err != nil {
		fmt.Fprintln(os.Stderr, "mcptest: read script:", err)
		return 2
	}
	return playScript(script, args.text(1, ""))
}

// playScript answers messages on stdin from a script. If path is not empty, it appends every received message to that
// file.
func playScript(script json.RawMessage, path string) int {
	var heard func(line []byte)
	if path != "" {
		record, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			fmt.Fprintln(os.Stderr, "mcptest: open record:", err)
			return 2
		}
		defer func() { _ = record.Close() }()
		heard = func(line []byte) { _, _ = record.Write(append(line[:len(line):len(line)], '\n')) }
	}
	return serveStdio(newScripted(script), stdout(), heard)
}

// A scriptedServer is a server that answers from a script.
type scriptedServer struct {
	script json.RawMessage
	honest methodTable
	// later contains the functions that send the result after the response to an $ask, by the ID of the $ask request.
	later map[string]func()
}

func newScripted(script json.RawMessage) *scriptedServer {
	return &scriptedServer{script: script, honest: scriptDefaults(script), later: map[string]func(){}}
}

// scriptDefaults returns the server that answers methods that the script does not contain. It declares the capabilities
// for which the script has results.
func scriptDefaults(script json.RawMessage) methodTable {
	capabilities := `{"tools":{"listChanged":true}`
	for _, c := range []struct{ method, capability string }{
		{mcp.MethodPromptsList, `"prompts":{"listChanged":true}`},
		{mcp.MethodResourcesList, `"resources":{"listChanged":true,"subscribe":true}`},
		{mcp.MethodComplete, `"completions":{}`},
		{mcp.MethodSetLevel, `"logging":{}`},
	} {
		if rawjson.Get(script, c.method) != nil {
			capabilities += "," + c.capability
		}
	}
	capabilities += "}"
	return legacyServer().with(methodTable{
		mcp.MethodInitialize: func(c *messageStream, m mcp.Message) { c.result(m, initializeResult(m, capabilities)) },
	})
}

// handle handles one message from the script.
func (s *scriptedServer) handle(c *messageStream, m mcp.Message) {
	if m.IsResponse() {
		if then, ok := s.later[string(m.ID)]; ok {
			delete(s.later, string(m.ID))
			then()
		}
		return
	}
	value := s.find(m)
	switch {
	case !m.IsRequest():
		s.sendBefore(c, value)
	case value == nil:
		s.honest.handle(c, m)
	case string(value) == "null":
	default:
		s.sendBefore(c, value)
		if ask := rawjson.Get(value, "$ask"); ask != nil {
			s.later[string(rawjson.Get(ask, "id"))] = func() { s.send(c, m, rawjson.Get(value, "$result")) }
			c.raw(ask)
			return
		}
		if inner := rawjson.Get(value, "$result"); inner != nil {
			value = inner
		}
		s.send(c, m, value)
	}
}

func (s *scriptedServer) find(m mcp.Message) json.RawMessage {
	name, ok := mcp.TargetName(m.Method, m.Params)
	if value := rawjson.Get(s.script, m.Method+" "+name); ok && value != nil {
		return value
	}
	return rawjson.Get(s.script, m.Method)
}

func (s *scriptedServer) sendBefore(c *messageStream, value json.RawMessage) {
	for message := range rawjson.Elements(rawjson.Get(value, "$before")) {
		c.raw(message)
	}
}

func (s *scriptedServer) send(c *messageStream, m mcp.Message, value json.RawMessage) {
	switch e := rawjson.Get(value, "$error"); {
	case e != nil:
		c.say(mcp.Message{ID: m.ID, Error: e})
	case string(value) == `"$params"`:
		params := m.Params
		if params == nil {
			params = json.RawMessage("null")
		}
		c.result(m, `{"content":[],"params":`+string(params)+`}`)
	default:
		c.result(m, string(value))
	}
}
