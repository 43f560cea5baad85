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

// A messageHandler handles messages one after the other, including messages that are not valid JSON-RPC.
type messageHandler interface {
	handle(c *messageStream, m mcp.Message)
}

// A messageStream is the output of a server that is written without the SDK. It must be used by one goroutine at a
// time.
type messageStream struct {
	// out writes one message in the format of the transport, such as a line or an event.
	out func(message []byte)
	// alter, if not nil, returns the bytes to write in place of a message, for servers that send damaged messages. The
	// bytes may contain several lines.
	alter func(message []byte) []byte
}

// serveStdio calls a.handle with each message on stdin until stdin ends, and returns the exit code. Before that, heard,
// if not nil, is called with the line of the message.
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

// stdout returns the stream on the stdout of the process.
func stdout() *messageStream {
	return &messageStream{out: func(message []byte) { _, _ = os.Stdout.Write(append(message, '\n')) }}
}

// A methodTable is a server with a function for each method. It answers requests with other methods with "method not
// found", and ignores other notifications.
type methodTable map[string]func(c *messageStream, m mcp.Message)

func (h methodTable) handle(c *messageStream, m mcp.Message) {
	switch handle, ok := h[m.Method]; {
	case ok:
		handle(c, m)
	case m.IsRequest():
		c.fail(m, mcp.CodeMethodNotFound, "method not found: "+m.Method)
	}
}

// stdio serves on the stdin and stdout of the process.
func (h methodTable) stdio() int { return serveStdio(h, stdout(), nil) }

// with returns a copy of the server in which the functions in changes are added or replaced.
func (h methodTable) with(changes methodTable) methodTable {
	out := maps.Clone(h)
	maps.Copy(out, changes)
	return out
}

// raw writes the bytes of a message, changed by the function alter if it is set.
func (c *messageStream) raw(message []byte) {
	if c.alter != nil {
		message = c.alter(message)
	}
	c.out(message)
}

func (c *messageStream) say(m mcp.Message) { c.raw(m.Append(nil)) }

// result sends the response to m with exactly these bytes as its result.
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

// text sends the response to a call with one block of text.
func (c *messageStream) text(m mcp.Message, text string) {
	c.result(m, `{"content":[{"type":"text","text":`+string(rawjson.Quote(text))+`}]}`)
}

// neverAnswer handles a request without a response.
func neverAnswer(*messageStream, mcp.Message) {}

// alwaysAnswer returns a function that answers each request with the same result.
func alwaysAnswer(result string) func(*messageStream, mcp.Message) {
	return func(c *messageStream, m mcp.Message) { c.result(m, result) }
}

const echoTool = `{"name":"echo","description":"Says the text again.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}`

// legacyServer returns a small honest server of the stateful generation, with one tool: echo. Many named servers are
// variants of this server.
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

// initializeResult returns the result of initialize. Its version is the client's version if that is a stateful one,
// else 2025-11-25.
func initializeResult(m mcp.Message, capabilities string) string {
	version := rawjson.GetString(m.Params, "protocolVersion")
	if !slices.Contains(mcp.LegacyVersions(), version) {
		version = mcp.Version20251125
	}
	return `{"protocolVersion":"` + version + `","capabilities":` + capabilities +
		`,"serverInfo":{"name":"mcptest","version":"1.0.0"}}`
}
