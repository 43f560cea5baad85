package mcptest

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// oddServers returns servers that work but behave unusually.
func oddServers() []namedServer {
	return []namedServer{
		{"raw", "FILE [LOG]", "answers from a script (see Script) and writes what it receives to LOG", runScript},
		{"poisoned", "[LOG]", "answers, with an order for a model or invisible characters in all that it lists",
			runPoisoned},
		{"legacy", "", "stateful only, by hand: one tool, echo",
			func(serverArgs) int { return legacyServer().stdio() }},
		{"silent-discover", "", "legacy; never answers server/discover", silentDiscover},
		{"exit-discover", "", "legacy; exits on server/discover", exitDiscover},
		{"modern-only", "", "stateless only, by hand, and strict; see modern for its tools",
			func(serverArgs) int { return serveStdio(newModern(), stdout(), nil) }},
		{"talker", "ERA [RECORD]",
			"legacy or modern, by hand: says and asks all that a server can; see talker for its tools", runTalker},
		{"string-id", "", "legacy; answers with the id as a string", stringID},
		{"junk", "", "legacy; mixes all kinds of data that are not messages into stdout", junk},
		{"slow-start", "MS", "legacy; answers nothing for that long", slowStart},
		{"flood", "N", "legacy; N notifications after initialized, N log lines and N list_changed in each call", flood},
		{"huge-line", "BYTES", "legacy; a call is answered with that many bytes of text, all on one line", hugeLine},
		{"many-tools", "N [PAGE]", "legacy; lists N tools: tool_0000, tool_0001 …, on pages of PAGE", manyTools},
		{"endless-cursor", "", "legacy; every page of tools leads to another", endlessCursor},
		{"repeat-cursor", "", "legacy; every page of tools leads to the same", repeatCursor},
		{"bad-schema", "", "legacy; lists tools no SDK would: null, without a name, without a schema", badSchema},
	}
}

func silentDiscover(serverArgs) int {
	return legacyServer().with(methodTable{mcp.MethodDiscover: neverAnswer}).stdio()
}

func exitDiscover(serverArgs) int {
	return legacyServer().with(methodTable{mcp.MethodDiscover: func(*messageStream, mcp.Message) {
		fmt.Fprintln(os.Stderr, "fatal: expected initialize")
		os.Exit(1)
	}}).stdio()
}

func stringID(serverArgs) int {
	c := stdout()
	c.alter = func(message []byte) []byte {
		m, err := mcp.ParseMessage(message)
		if err != nil || m.ID == nil || m.ID[0] == '"' {
			return message
		}
		m.ID = rawjson.Quote(string(m.ID))
		return m.Append(nil)
	}
	return serveStdio(legacyServer(), c, nil)
}

// junk runs a server that damages the form of every message. It uses several forms in turn: other lines before or after
// the message, spaces, a missing member or other messages. A tolerant client can still read every message.
func junk(serverArgs) int {
	const log = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"on the same line"}}`
	dresses := []func(m string) string{
		func(m string) string { return "2026-01-01 12:00:00 INFO listening on stdio\n\xef\xbb\xbf" + m },
		func(m string) string { return "\n\n  \t" + m + "\r\n\r" },
		func(m string) string { return log + m },
		func(m string) string { return strings.Replace(m, `"jsonrpc":"2.0",`, "", 1) },
		func(m string) string {
			return "{\"jsonrpc\":\"2.0\",\"id\":987654321,\"result\":{\"content\":[]}}\n" +
				"{\"jsonrpc\":\"2.0\",\"id\":\"nobody\",\"error\":{\"code\":-1,\"message\":\"?\"}}\n" + m
		},
		func(m string) string {
			return "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/unheard_of\",\"params\":{}}\n{\"broken\": \n" + m
		},
		func(m string) string { return "42\n\"text\"\nnull\n[]\n{}\n\xff\xfe\n" + m + " " + log },
	}
	turn := 0
	c := stdout()
	c.alter = func(message []byte) []byte {
		turn++
		return []byte(dresses[(turn-1)%len(dresses)](string(message)))
	}
	return serveStdio(legacyServer(), c, nil)
}

func slowStart(args serverArgs) int {
	pause(args.millis(0, 1000))
	return legacyServer().stdio()
}

func flood(args serverArgs) int {
	n := args.number(0, 1000)
	honest := legacyServer()
	return honest.with(methodTable{
		mcp.NoteInitialized: func(c *messageStream, _ mcp.Message) {
			for range n {
				c.notify(mcp.NoteToolsChanged, "")
			}
		},
		mcp.MethodToolsCall: func(c *messageStream, m mcp.Message) {
			for i := range n {
				c.notify(mcp.NoteMessage, fmt.Sprintf(`{"level":"info","data":"line %d"}`, i))
				c.notify(mcp.NoteToolsChanged, "")
			}
			honest.handle(c, m)
		},
	}).stdio()
}

func hugeLine(args serverArgs) int {
	size := args.number(0, 1<<20)
	return legacyServer().with(methodTable{mcp.MethodToolsCall: func(c *messageStream, m mcp.Message) {
		c.text(m, strings.Repeat("x", size))
	}}).stdio()
}

func manyTools(args serverArgs) int {
	n := args.number(0, 100)
	page := args.number(1, n)
	return legacyServer().with(methodTable{mcp.MethodToolsList: func(c *messageStream, m mcp.Message) {
		from := 0
		_, _ = fmt.Sscanf(rawjson.GetString(m.Params, "cursor"), "from %d", &from)
		var list bytes.Buffer
		for i := from; i < min(from+page, n); i++ {
			if i > from {
				list.WriteByte(',')
			}
			fmt.Fprintf(&list, `{"name":"tool_%04d","description":"Tool number %d.","inputSchema":{"type":"object"}}`,
				i, i)
		}
		next := ""
		if from+page < n {
			next = fmt.Sprintf(`,"nextCursor":"from %d"`, from+page)
		}
		c.result(m, `{"tools":[`+list.String()+`]`+next+`}`)
	}}).stdio()
}

func endlessCursor(serverArgs) int {
	page := 0
	return legacyServer().with(methodTable{mcp.MethodToolsList: func(c *messageStream, m mcp.Message) {
		page++
		c.result(m, fmt.Sprintf(`{"tools":[{"name":"tool_%d","inputSchema":{"type":"object"}}],"nextCursor":"page %d"}`,
			page, page))
	}}).stdio()
}

func repeatCursor(serverArgs) int {
	return legacyServer().with(methodTable{mcp.MethodToolsList: alwaysAnswer(`{"tools":[` + echoTool +
		`],"nextCursor":"again"}`)}).stdio()
}

// badSchemaTools are invalid or unusual tool definitions that a client must tolerate. The last one is valid.
var badSchemaTools = []string{
	`null`,
	`{"inputSchema":{"type":"object"}}`,
	`{"name":"","inputSchema":{"type":"object"}}`,
	`{"name":7,"inputSchema":{"type":"object"}}`,
	`"a string"`,
	`[]`,
	`{"name":"no_type","inputSchema":{"properties":{"a":{"type":"string"}}}}`,
	`{"name":"no_schema"}`,
	`{"name":"schema_is_null","inputSchema":null}`,
	`{"name":"schema_is_text","inputSchema":"object"}`,
	`{"name":"bad_mark","inputSchema":{"type":"object","properties":{"a":{"type":"array","x-mcp-header":"Bad Name"}}}}`,
	`{"name":"spaces and ünicode / slash","inputSchema":{"type":"object"}}`,
	`{"name":"echo","description":"The first echo.","inputSchema":{"type":"object"}}`,
	echoTool,
}

func badSchema(serverArgs) int {
	return legacyServer().with(methodTable{
		mcp.MethodToolsList: alwaysAnswer(`{"tools":[` + strings.Join(badSchemaTools, ",") + `]}`),
		mcp.MethodToolsCall: func(c *messageStream, m mcp.Message) { c.text(m, rawjson.GetString(m.Params, "name")) },
	}).stdio()
}
