package mcptest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// An answerer handles one message after the other, those that are no JSON-RPC too.
type answerer interface {
	answer(c *conversation, m wire.Message)
}

// A conversation is the place where a server that is made by hand speaks. It is for one goroutine.
type conversation struct {
	// out writes one message as it goes over the wire: on a line, in an event.
	out func(message []byte)
	// dress changes a message on its way out, for servers that mistreat what they write. It may make several lines of it.
	dress func(message []byte) []byte
}

// serveStdio has a answer what comes on stdin, until that ends. It returns the exit code. heard, where it is not nil, sees
// every line before.
func serveStdio(a answerer, c *conversation, heard func(line []byte)) int {
	lines := wire.NewLineReader(os.Stdin, 0)
	for {
		line, err := lines.Next()
		if err != nil {
			return 0
		}
		if heard != nil {
			heard(line)
		}
		m, err := wire.Parse(line)
		if err != nil {
			fmt.Fprintln(os.Stderr, "mcptest:", err)
			continue
		}
		a.answer(c, m)
	}
}

// stdout is the conversation on the process's own stdout.
func stdout() *conversation {
	return &conversation{out: func(message []byte) { _, _ = os.Stdout.Write(append(message, '\n')) }}
}

// A handMade server answers messages by method. A request whose method it does not have gets "method not found"; a
// notification it does not have is passed over.
type handMade map[string]func(c *conversation, m wire.Message)

func (h handMade) answer(c *conversation, m wire.Message) {
	switch handle, ok := h[m.Method]; {
	case ok:
		handle(c, m)
	case m.IsRequest():
		c.fail(m, wire.CodeMethodNotFound, "method not found: "+m.Method)
	}
}

// stdio serves on the process's own stdin and stdout.
func (h handMade) stdio() int { return serveStdio(h, stdout(), nil) }

// with copies the server and puts methods in the place of its own.
func (h handMade) with(changes handMade) handMade {
	out := maps.Clone(h)
	maps.Copy(out, changes)
	return out
}

// raw writes bytes as they are.
func (c *conversation) raw(message []byte) {
	if c.dress != nil {
		message = c.dress(message)
	}
	c.out(message)
}

func (c *conversation) say(m wire.Message) { c.raw(m.Append(nil)) }

// result answers m with a result, exactly these bytes.
func (c *conversation) result(m wire.Message, result string) {
	c.say(wire.Message{ID: m.ID, Result: json.RawMessage(result)})
}

func (c *conversation) fail(m wire.Message, code int, message string) {
	c.say(wire.Message{ID: m.ID, Error: wire.ErrorObject(code, message, nil)})
}

func (c *conversation) notify(method, params string) {
	m := wire.Message{Method: method}
	if params != "" {
		m.Params = json.RawMessage(params)
	}
	c.say(m)
}

// text answers a call with one block of text.
func (c *conversation) text(m wire.Message, text string) {
	c.result(m, `{"content":[{"type":"text","text":`+string(wire.Quote(text))+`}]}`)
}

// silence is the answer that never comes.
func silence(*conversation, wire.Message) {}

// always answers with the same result.
func always(result string) func(*conversation, wire.Message) {
	return func(c *conversation, m wire.Message) { c.result(m, result) }
}

const echoTool = `{"name":"echo","description":"Says the text again.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}`

// legacyServer is a small honest server of the stateful generation, with one tool: echo. The others are made from it.
func legacyServer() handMade {
	return handMade{
		wire.MethodInitialize: func(c *conversation, m wire.Message) {
			c.result(m, initializeResult(m, `{"tools":{"listChanged":true},"logging":{}}`))
		},
		wire.MethodPing:      always(`{}`),
		wire.MethodSetLevel:  always(`{}`),
		wire.MethodToolsList: always(`{"tools":[` + echoTool + `]}`),
		wire.MethodToolsCall: func(c *conversation, m wire.Message) {
			if name := wire.GetText(m.Params, "name"); name != "echo" {
				c.fail(m, wire.CodeInvalidParams, "unknown tool: "+name)
				return
			}
			c.text(m, wire.GetText(m.Params, "arguments", "text"))
		},
	}
}

// initializeResult takes the version that the client asked for, where it is one of the stateful ones.
func initializeResult(m wire.Message, capabilities string) string {
	version := wire.GetText(m.Params, "protocolVersion")
	if !slices.Contains(wire.LegacyVersions(), version) {
		version = wire.Version20251125
	}
	return `{"protocolVersion":"` + version + `","capabilities":` + capabilities +
		`,"serverInfo":{"name":"mcptest","version":"1.0.0"}}`
}
