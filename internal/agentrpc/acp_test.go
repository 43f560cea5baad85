package agentrpc_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/internal/agentrpc"
	"github.com/google/go-cmp/cmp"
)

func newHistory(t *testing.T, h *scriptedHost) string {
	t.Helper()
	history := agent.NewMemoryHistory()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.histories[history.ID()] = history
	return history.ID()
}

// openACP initializes the connection and opens a session.
func (c *client) openACP() (session string) {
	c.t.Helper()
	return c.openACPWith("{}")
}

// openACPWith is openACP for a client with capabilities.
func (c *client) openACPWith(capabilities string) (session string) {
	c.t.Helper()
	c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":%s}}`, capabilities)
	if got := c.next(); !strings.Contains(got, `"protocolVersion":1`) || !strings.Contains(got, `"loadSession":true`) {
		c.t.Fatalf("initialize: %s", got)
	}
	c.send(`{"jsonrpc":"2.0","id":"new","method":"session/new","params":{"cwd":"/tmp","mcpServers":[]}}`)
	var m struct {
		Result struct {
			ID    string `json:"sessionId"`
			Modes struct{ CurrentModeID string }
		}
	}
	if err := json.Unmarshal([]byte(c.until(`"id":"new"`)), &m); err != nil || m.Result.Modes.CurrentModeID != "default" {
		c.t.Fatalf("session/new: %+v, %v", m, err)
	}
	c.until("available_commands_update")
	return m.Result.ID
}

func (c *client) prompt(id int, session, blocks string) {
	c.send(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":%q,"prompt":[%s]}}`, id, session, blocks)
}

// updates returns the updates among lines, without the session.
func updates(lines []string) (all []string) {
	for _, line := range lines {
		var m struct {
			Params struct{ Update json.RawMessage }
		}
		if json.Unmarshal([]byte(line), &m) == nil && m.Params.Update != nil {
			all = append(all, string(m.Params.Update))
		}
	}
	return all
}

func TestACPPrompt(t *testing.T) {
	c, host := acp(t, calls("read", `{"path":"a.txt"}`), says("done", drawbridge.StopEnd))
	id := c.openACP()
	c.prompt(1, id, `{"type":"text","text":"see "},{"type":"resource_link","name":"x","uri":"file:///x"},`+
		`{"type":"resource","resource":{"uri":"file:///y","text":"content"}},`+
		`{"type":"image","mimeType":"image/png","data":"AAAA"}`)
	lines := c.all(`"id":1,`)
	got := strings.Join(updates(lines), "\n")
	want := `{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"I call read"}}
{"sessionUpdate":"tool_call","toolCallId":"c1","title":"read","kind":"read","status":"in_progress","rawInput":{"path":"a.txt"},"locations":[{"path":"/tmp/a.txt"}]}
{"sessionUpdate":"tool_call_update","content":[{"type":"content","content":{"type":"text","text":"{\"path\":\"a.txt\"}"}}],"toolCallId":"c1","status":"completed"}
{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"done"}}`
	if got != want {
		t.Errorf("the updates are\n%s\nwant\n%s", got, want)
	}
	if last := lines[len(lines)-1]; last != `{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}` {
		t.Error(last)
	}
	parts := host.model.seen[0].Messages[0].Parts
	if text := "see [x](file:///x)\n<file path=\"file:///y\">\ncontent\n</file>"; parts[0].Text != text ||
		len(parts) != 2 || parts[1].Image == nil {
		t.Errorf("the model saw %+v, want %q", parts, text)
	}
	// Another session goes on with the same conversation.
	c.send(`{"jsonrpc":"2.0","id":2,"method":"session/close","params":{"sessionId":%q}}`, id)
	c.until(`"id":2,"result":{}`)
	c.send(`{"jsonrpc":"2.0","id":3,"method":"session/close","params":{"sessionId":%q}}`, id)
	c.until(`"id":3,"error":{"code":-32002`)
	c.send(`{"jsonrpc":"2.0","id":4,"method":"session/load","params":{"sessionId":%q,"cwd":"/tmp","mcpServers":[{"name":"m","command":"c"}]}}`, id)
	lines = c.all(`"id":4,`)
	if got := updates(lines)[2:]; strings.Join(got, "\n") != want {
		t.Errorf("the replay is\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	c.until("not used: m")
}

// TestACPServers has a client that sends MCP servers: the host is given all of them, and may refuse.
func TestACPServers(t *testing.T) {
	c, host := acp(t)
	c.openACP()
	open := func(servers string) string {
		c.send(`{"jsonrpc":"2.0","id":3,"method":"session/new","params":{"cwd":"/","mcpServers":[%s]}}`, servers)
		return c.until(`"id":3`)
	}
	open(`{"name":"a","command":"run","args":["-x"],"env":[{"name":"K","value":"v"}]},` +
		`{"type":"http","name":"b","url":"http://x","headers":[{"name":"H","value":"v"}]},{"type":"sse","name":"c","url":"y"}`)
	c.until("not used: c")
	value := []agentrpc.Variable{{Name: "K", Value: "v"}}
	want := []agentrpc.ClientServer{{Name: "a", Transport: "stdio", Command: "run", Args: []string{"-x"}, Env: value},
		{Name: "b", Transport: "http", URL: "http://x", Headers: []agentrpc.Variable{{Name: "H", Value: "v"}}},
		{Name: "c", Transport: "sse", URL: "y"}}
	if diff := cmp.Diff(want, host.servers); diff != "" {
		t.Error(diff)
	}
	for _, tt := range []struct{ servers, want string }{
		{`{"name":"refused","command":"x"}`, `"code":-32603,"message":"the server refused may not be used"`},
		{`{}`, `"code":-32602,"message":"entry 1 of mcpServers needs a name`},
		{`{"name":"a","type":"http","command":"x"}`, `"code":-32602`},
		{`{"name":"a","type":"acp","url":"secret"}`, `"code":-32602`},
		{`{"name":"a","command":"x","env":{"K":"secret"}}`, `"code":-32602`},
	} {
		if got := open(tt.servers); !strings.Contains(got, tt.want) || strings.Contains(got, "secret") {
			t.Errorf("%s: %s, want %s", tt.servers, got, tt.want)
		}
	}
}

func TestACPStopReasons(t *testing.T) {
	c, _ := acp(t, says("a", drawbridge.StopMaxOutput), says("b", drawbridge.StopRefusal))
	id := c.openACP()
	for i, want := range []string{"max_tokens", "refusal"} {
		c.prompt(i, id, `{"type":"text","text":"p"}`)
		if got := c.until(`"result"`); !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	c.prompt(2, id, `{"type":"text","text":"p"}`)
	if got := c.until(`"id":2`); !strings.Contains(got, `-32603,"message":"run failed: `) {
		t.Error(got)
	}
}

func TestACPPermission(t *testing.T) {
	for _, tt := range []struct{ tool, answer, want string }{
		{"ask_approval", `"result":{"outcome":{"outcome":"selected","optionId":"allow_once"}}`, "allow=true always=false"},
		{"ask_script", `"result":{"outcome":{"outcome":"selected","optionId":"allow_always"}}`, "allow=true always=true"},
		{"ask_approval", `"result":{"outcome":{"outcome":"selected","optionId":"reject_once"}}`, "allow=false always=false"},
		{"ask_approval", `"result":{"outcome":{"outcome":"selected","optionId":"made_up"}}`, "allow=false always=false"},
		{"ask_approval", `"result":{"outcome":{"outcome":"cancelled"}}`, "allow=false always=false"},
		{"ask_approval", `"result":null`, "allow=false always=false"},
		{"ask_approval", `"error":{"code":-32601,"message":"no"}`, "allow=false always=false"},
	} {
		t.Run(tt.tool+tt.answer, func(t *testing.T) {
			c, _ := acp(t, calls(tt.tool, `{"b":"x","a":1e2}`), says("done", drawbridge.StopEnd))
			id := c.openACP()
			c.prompt(1, id, `{"type":"text","text":"p"}`)
			asked := c.until("session/request_permission")
			for _, want := range []string{`"rawInput":{"b":"x","a":1e2}`, `"toolCallId":"c1"`, `"kind":"reject_once"`, "it writes"} {
				if !strings.Contains(asked, want) {
					t.Errorf("%s is not in %s", want, asked)
				}
			}
			c.send(`{"jsonrpc":"2.0","id":1,%s}`, tt.answer)
			if got := c.until(`"status":"completed"`); !strings.Contains(got, tt.want) {
				t.Errorf("%s, want %s", got, tt.want)
			}
			c.until("end_turn")
		})
	}
}

func TestACPDeclinesOtherQuestions(t *testing.T) {
	for _, tool := range []string{"ask_form", "ask_url"} {
		c, _ := acp(t, calls(tool, `{}`), says("done", drawbridge.StopEnd))
		id := c.openACP()
		c.prompt(1, id, `{"type":"text","text":"p"}`)
		c.until("this was declined")
		c.until("allow=false")
		c.until("end_turn")
	}
}

func TestACPCancel(t *testing.T) {
	for _, tt := range []struct {
		name, waits string
		answer      drawbridge.ModelResponse
	}{
		{"model", "begins", says("begins", "wait")},
		{"question", "session/request_permission", calls("ask_approval", `{}`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := acp(t, tt.answer, says("again", drawbridge.StopEnd))
			id := c.openACP()
			c.prompt(1, id, `{"type":"text","text":"p"}`)
			c.until(tt.waits)
			c.prompt(2, id, `{"type":"text","text":"q"}`)
			if got := c.until(`"id":2`); !strings.Contains(got, `-32600,"message":"a prompt of this session has not ended yet"`) {
				t.Error(got)
			}
			c.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, id)
			if got := c.until(`"id":1,"result"`); !strings.Contains(got, "cancelled") {
				t.Error(got)
			}
			c.prompt(3, id, `{"type":"text","text":"r"}`)
			c.until("end_turn")
		})
	}
}

func TestACPModes(t *testing.T) {
	c, _ := acp(t)
	id := c.openACP()
	c.send(`{"jsonrpc":"2.0","id":1,"method":"session/set_mode","params":{"sessionId":%q,"modeId":"plan"}}`, id)
	got := updates(c.all(`"id":1`))
	if len(got) != 2 || got[0] != `{"sessionUpdate":"current_mode_update","currentModeId":"plan"}` ||
		!strings.HasPrefix(got[1], `{"sessionUpdate":"config_option_update","configOptions":[{"id":"mode"`) ||
		!strings.Contains(got[1], `"currentValue":"plan"`) {
		t.Error(got)
	}
	c.send(`{"jsonrpc":"2.0","id":2,"method":"session/set_mode","params":{"sessionId":%q,"modeId":"all"}}`, id)
	c.until(`"id":2,"error":{"code":-32602`)
}

func TestACPErrors(t *testing.T) {
	c, _ := acp(t)
	c.send(`{"jsonrpc":"2.0","id":5,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`)
	c.until(`"id":5,"error":{"code":-32600`)
	id := c.openACP()
	for _, tt := range []struct{ line, want string }{
		{`{`, `"id":null,"error":{"code":-32700`},
		{`{"jsonrpc":"2.0","id":1,"method":"session/fly"}`, `"code":-32601`},
		{`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"here","mcpServers":[]}}`, `"code":-32602`},
		{`{"jsonrpc":"2.0","id":1,"method":"session/load","params":{"cwd":"/","sessionId":"gone"}}`, `"message":"no session gone"`},
		{`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"gone","prompt":[]}}`, `"code":-32002`},
		{fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"session/load","params":{"cwd":"/","sessionId":%q}}`, id), `open in this connection already`},
		{fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"audio"}]}}`, id), `"code":-32602`},
		{fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":%q,"prompt":[]}}`, id), `the prompt is empty`},
		{`{"jsonrpc":"2.0","id":77,"result":{}}` + "\n" + `{"jsonrpc":"2.0","method":"$/unknown"}` + "\n" +
			`{"jsonrpc":"2.0","id":2,"method":"x"}`, `"id":2`},
	} {
		c.send("%s", tt.line)
		if got := c.next(); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %s", tt.line, got, tt.want)
		}
	}
}

// TestACPClientGone ends the input and the output in the middle of runs of two sessions.
func TestACPClientGone(t *testing.T) {
	c, host := acp(t, says("begins", "wait"), calls("ask_approval", `{}`))
	first, second := c.openACP(), c.openACP()
	c.prompt(1, first, `{"type":"text","text":"p"}`)
	c.until("begins")
	c.prompt(2, second, `{"type":"text","text":"p"}`)
	c.until("session/request_permission")
	_ = c.out.Close()
	_ = c.in.Close()
	if err := <-c.ended; err != nil {
		t.Error(err)
	}
	if len(host.inUse) != 0 {
		t.Errorf("%v are held", host.inUse)
	}
}
