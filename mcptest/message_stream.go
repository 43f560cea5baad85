package mcptest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// An messageHandler handles one message after the other, those that are no JSON-RPC too.
type messageHandler interface {
	handle(c *messageStream, m mcp.Message)
}

// A messageStream is the place where a server that is made by hand speaks. It is for one goroutine.
type messageStream struct {
	// out writes one message as it goes over the wire: on a line, in an event.
	out func(message []byte)
	// alter changes a message on its way out, for servers that mistreat what they write. It may make several lines of
	// it.
	alter func(message []byte) []byte
}

// serveStdio has a answer what comes on stdin, until that ends. It returns the exit code. heard, where it is not nil,
// sees every line before.
func serveStdio(a messageHandler, c *messageStream, heard func(line []byte)) int {
	lines := mcp.NewLineReader(os.Stdin, 0)
	for {
		line, err := lines.Next()
		if err != nil {
			return 0
		}
		if heard != nil {
			heard(line)
		}
		m, err := mcp.ParseMessage(line)
		if err != nil {
			fmt.Fprintln(os.Stderr, "mcptest:", err)
			continue
		}
		a.handle(c, m)
	}
}

// stdout is the conversation on the process's own stdout.
func stdout() *messageStream {
	return &messageStream{out: func(message []byte) { _, _ = os.Stdout.Write(append(message, '\n')) }}
}

// A methodTable server answers messages by method. A request whose method it does not have gets "method not found"; a
// notification it does not have is passed over.
type methodTable map[string]func(c *messageStream, m mcp.Message)

func (h methodTable) handle(c *messageStream, m mcp.Message) {
	switch handle, ok := h[m.Method]; {
	case ok:
		handle(c, m)
	case m.IsRequest():
		c.fail(m, mcp.CodeMethodNotFound, "method not found: "+m.Method)
	}
}

// stdio serves on the process's own stdin and stdout.
func (h methodTable) stdio() int { return serveStdio(h, stdout(), nil) }

// with copies the server and puts methods in the place of its own.
func (h methodTable) with(changes methodTable) methodTable {
	out := maps.Clone(h)
	maps.Copy(out, changes)
	return out
}

// raw writes bytes as they are.
func (c *messageStream) raw(message []byte) {
	if c.alter != nil {
		message = c.alter(message)
	}
	c.out(message)
}

func (c *messageStream) say(m mcp.Message) { c.raw(m.Append(nil)) }

// result answers m with a result, exactly these bytes.
func (c *messageStream) result(m mcp.Message, result string) {
	c.say(mcp.Message{ID: m.ID, Result: json.RawMessage(result)})
}

func (c *messageStream) fail(m mcp.Message, code int, message string) {
	c.say(mcp.Message{ID: m.ID, Error: mcp.NewErrorObject(code, message, nil)})
}

func (c *messageStream) notify(method, params string) {
	m := mcp.Message{Method: method}
	if params != "" {
		m.Params = json.RawMessage(params)
	}
	c.say(m)
}

// text answers a call with one block of text.
func (c *messageStream) text(m mcp.Message, text string) {
	c.result(m, `{"content":[{"type":"text","text":`+string(rawjson.Quote(text))+`}]}`)
}

// neverAnswer is the answer that never comes.
func neverAnswer(*messageStream, mcp.Message) {}

// alwaysAnswer answers with the same result.
func alwaysAnswer(result string) func(*messageStream, mcp.Message) {
	return func(c *messageStream, m mcp.Message) { c.result(m, result) }
}

const echoTool = `{"name":"echo","description":"Says the text again.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}`

// legacyServer is a small honest server of the stateful generation, with one tool: echo. The others are made from it.
func legacyServer() methodTable {
	return methodTable{
		mcp.MethodInitialize: func(c *messageStream, m mcp.Message) {
			c.result(m, initializeResult(m, `{"tools":{"listChanged":true},"logging":{}}`))
		},
		mcp.MethodPing:      alwaysAnswer(`{}`),
		mcp.MethodSetLevel:  alwaysAnswer(`{}`),
		mcp.MethodToolsList: alwaysAnswer(`{"tools":[` + echoTool + `]}`),
		mcp.MethodToolsCall: func(c *messageStream, m mcp.Message) {
			if name := rawjson.GetString(m.Params, "name"); name != "echo" {
				c.fail(m, mcp.CodeInvalidParams, "unknown tool: "+name)
				return
			}
			c.text(m, rawjson.GetString(m.Params, "arguments", "text"))
		},
	}
}

// initializeResult takes the version that the client asked for, where it is one of the stateful ones.
func initializeResult(m mcp.Message, capabilities string) string {
	version := rawjson.GetString(m.Params, "protocolVersion")
	if !slices.Contains(mcp.LegacyVersions(), version) {
		version = mcp.Version20251125
	}
	return `{"protocolVersion":"` + version + `","capabilities":` + capabilities +
		`,"serverInfo":{"name":"mcptest","version":"1.0.0"}}`
}
