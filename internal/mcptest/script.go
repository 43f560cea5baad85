package mcptest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// Script writes a script for the server "raw" to a file of the test's and returns its path.
//
// A script is a JSON object. A member's name is a method, or a method and the name or URI it is called with:
// "tools/call", "tools/call echo", "resources/read file:///a". Its value is the result that is sent, byte for byte. These
// say something else:
//
//   - {"$error": OBJECT} answers with that error object,
//   - {"$before": [MESSAGE…], "$result": VALUE} sends whole messages first, as they stand,
//   - {"$ask": MESSAGE, "$result": VALUE} sends a request first, and the result when it was answered,
//   - "$params" as a value or as a $result gives back the request's params, as {"content":[],"params":PARAMS},
//   - null never answers.
//
// "initialize", "ping" and "tools/list" have honest answers where the script has none.
func Script(t testing.TB, script string) (path string) {
	t.Helper()
	if err := wire.Valid([]byte(script)); err != nil {
		t.Fatalf("mcptest: script: %v", err)
	}
	path = filepath.Join(t.TempDir(), "script.json")
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// runScript is the server "raw": the script, then a file that takes down every message received.
func runScript(args arguments) int {
	script, err := os.ReadFile(args.text(0, ""))
	if err != nil {
		fmt.Fprintln(os.Stderr, "mcptest: read script:", err)
		return 2
	}
	return playScript(script, args.text(1, ""))
}

// playScript answers from a script, and takes down every message received in a file, if there is one.
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

// A scripted server answers from a script.
type scripted struct {
	script json.RawMessage
	honest handMade
	// later are the results that wait for the answer to a $ask, by the id of that request.
	later map[string]func()
}

func newScripted(script json.RawMessage) *scripted {
	return &scripted{script: script, honest: scriptDefaults(script), later: map[string]func(){}}
}

// scriptDefaults answers what a script does not mention. The capabilities are those the script has answers for.
func scriptDefaults(script json.RawMessage) handMade {
	capabilities := `{"tools":{"listChanged":true}`
	for _, c := range []struct{ method, capability string }{
		{wire.MethodPromptsList, `"prompts":{"listChanged":true}`},
		{wire.MethodResourcesList, `"resources":{"listChanged":true,"subscribe":true}`},
		{wire.MethodComplete, `"completions":{}`},
		{wire.MethodSetLevel, `"logging":{}`},
	} {
		if wire.Get(script, c.method) != nil {
			capabilities += "," + c.capability
		}
	}
	capabilities += "}"
	return legacyServer().with(handMade{
		wire.MethodInitialize: func(c *conversation, m wire.Message) { c.result(m, initializeResult(m, capabilities)) },
	})
}

// answer handles one message from the script.
func (s *scripted) answer(c *conversation, m wire.Message) {
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
		s.before(c, value)
	case value == nil:
		s.honest.answer(c, m)
	case string(value) == "null":
	default:
		s.before(c, value)
		if ask := wire.Get(value, "$ask"); ask != nil {
			s.later[string(wire.Get(ask, "id"))] = func() { s.send(c, m, wire.Get(value, "$result")) }
			c.raw(ask)
			return
		}
		if inner := wire.Get(value, "$result"); inner != nil {
			value = inner
		}
		s.send(c, m, value)
	}
}

func (s *scripted) find(m wire.Message) json.RawMessage {
	name, ok := wire.NameOf(m.Method, m.Params)
	if value := wire.Get(s.script, m.Method+" "+name); ok && value != nil {
		return value
	}
	return wire.Get(s.script, m.Method)
}

func (s *scripted) before(c *conversation, value json.RawMessage) {
	for message := range wire.Elements(wire.Get(value, "$before")) {
		c.raw(message)
	}
}

func (s *scripted) send(c *conversation, m wire.Message, value json.RawMessage) {
	switch e := wire.Get(value, "$error"); {
	case e != nil:
		c.say(wire.Message{ID: m.ID, Error: e})
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
