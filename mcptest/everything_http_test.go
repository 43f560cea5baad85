package mcptest_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/mcptest"
	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serve starts a handler and gives its URL.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	// Streams that are still open must not hold up the end of the test.
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

func talker(t *testing.T, modern bool) *mcptest.Talker {
	t.Helper()
	h, err := mcptest.HTTPTalker(modern, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

func TestHTTPServers(t *testing.T) {
	for _, tt := range []struct {
		name, protocol string
		handler        http.Handler
		sse            bool
	}{
		{"legacy", "2025-11-25", mcptest.HTTPLegacy(), false},
		{"modern", "2026-07-28", mcptest.HTTPModern(), false},
		{"modern, by hand", "2026-07-28", mcptest.HTTPModernOnly(), false},
		{"sse", "2024-11-05", mcptest.HTTPSSE(), true},
		{"only sse", "2024-11-05", mcptest.HTTPOnlySSE(), true},
		{"restarting, legacy", "2025-11-25", mcptest.HTTPRestarting(false), false},
		{"restarting, modern", "2026-07-28", mcptest.HTTPRestarting(true), false},
		{"script", "2025-11-25", mcptest.HTTPScript(`{}`, nil), false},
		{"talker, legacy", "2025-11-25", talker(t, false), false},
		{"talker, modern", "2026-07-28", talker(t, true), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: serve(t, tt.handler),
				DisableStandaloneSSE: true}
			if tt.sse {
				transport = &mcp.SSEClientTransport{Endpoint: serve(t, tt.handler)}
			}
			session := connectTo(t, tt.protocol, transport)
			if got := session.InitializeResult().ProtocolVersion; got != tt.protocol {
				t.Errorf("it speaks %s, want %s", got, tt.protocol)
			}
			if got := call(t, session, "echo", map[string]any{"text": "hello"}); got != "hello" {
				t.Errorf("echo says %q", got)
			}
		})
	}
}

func TestHTTPOnlySSERefusesAPost(t *testing.T) {
	if status, _ := post(t, serve(t, mcptest.HTTPOnlySSE()), hello); status != http.StatusMethodNotAllowed {
		t.Errorf("status %d", status)
	}
}

func post(t *testing.T, url, body string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return response.StatusCode, string(text) + " (" + err.Error() + ")"
	}
	return response.StatusCode, string(text)
}

func TestHTTPDropping(t *testing.T) {
	url := serve(t, mcptest.HTTPDropping())
	if status, answer := post(t, url, hello); status != http.StatusOK || answer != welcome {
		t.Errorf("status %d, %s", status, answer)
	}
	const half = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\": (unexpected EOF)"
	if status, answer := post(t, url, echo); status != http.StatusOK || answer != half {
		t.Errorf("status %d, %q", status, answer)
	}
}

func TestHTTPScript(t *testing.T) {
	var bodies []string
	url := serve(t, mcptest.HTTPScript(
		`{"tools/call":{"$before":[{"method":"note"}],"$result":{"x":9007199254740993}}}`,
		func(_ http.Header, body []byte) { bodies = append(bodies, string(body)) }))
	for _, tt := range []struct {
		body   string
		status int
		answer string
	}{
		{echo, http.StatusOK,
			"event: message\ndata: {\"method\":\"note\"}\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"x\":9007199254740993}}\n\n"},
		{probe, http.StatusNotFound,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found: server/discover"}}`},
		{`{"method":"notifications/initialized"}`, http.StatusAccepted, ""},
	} {
		if status, answer := post(t, url, tt.body); status != tt.status || answer != tt.answer {
			t.Errorf("status %d, %q", status, answer)
		}
	}
	if d := cmp.Diff([]string{echo, probe, `{"method":"notifications/initialized"}`}, bodies); d != "" {
		t.Error(d)
	}
}

func TestRestartForgetsSessions(t *testing.T) {
	server := mcptest.HTTPRestarting(false)
	session := connectTo(t, "2025-11-25", &mcp.StreamableClientTransport{Endpoint: serve(t, server)})
	if got := call(t, session, "echo", map[string]any{"text": "before"}); got != "before" {
		t.Error(got)
	}
	server.Restart()
	_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo",
		Arguments: map[string]any{"text": "after"}})
	if !errors.Is(err, mcp.ErrSessionMissing) {
		t.Errorf("after the restart: %v", err)
	}
}

// A listener of either server hears of changes that come from other requests.
func TestListening(t *testing.T) {
	over := func(h http.Handler) mcp.Transport { return &mcp.StreamableClientTransport{Endpoint: serve(t, h)} }
	for _, tt := range []struct {
		name, change string
		transport    mcp.Transport
	}{
		{"stdio, by hand", "change", command(t, "modern-only")},
		{"HTTP, by hand", "change", over(mcptest.HTTPModernOnly())},
		{"HTTP", "toggle", over(mcptest.HTTPModern())},
		{"HTTP, restarting", "toggle", over(mcptest.HTTPRestarting(true))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			changed := make(chan struct{}, 10)
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
				ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
			})
			session, err := client.Connect(t.Context(), tt.transport, nil)
			if err != nil {
				t.Fatal(err)
			}
			call(t, session, tt.change, map[string]any{})
			select {
			case <-changed:
			case <-t.Context().Done():
				t.Error("nothing was heard")
			}
			if err := session.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestModernOnlyAsks(t *testing.T) {
	session := connectTo(t, "2026-07-28", command(t, "modern-only"))
	if got := call(t, session, "confirm", nil); got != "hello, Ada" {
		t.Errorf("confirm says %q", got)
	}
	if got := call(t, session, "meta", nil); !strings.Contains(got,
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28"`) {
		t.Errorf("meta says %q", got)
	}
}

func TestModernOnlyIsStrict(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	got, _ := talk(t, []string{"modern-only"},
		hello,
		`{"id":2,"method":"tools/list","params":{}}`,
		`{"id":3,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01"}}}`,
		`{"id":4,"method":"tools/call","params":{"name":"confirm",`+meta+`}}`,
		`{"id":5,"method":"tools/call","params":{"name":"confirm","requestState":"forged",`+meta+`}}`,
		`{"id":6,"method":"tools/call","params":{"name":"wait",`+meta+`}}`,
		`{"id":7,"method":"tools/call","params":{"name":"wait","requestState":"round 1",`+meta+`}}`,
		`{"id":"L","method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["test://touched"]},`+meta+`}}`,
		`{"id":8,"method":"tools/call","params":{"name":"touch","arguments":{"uri":"test://touched"},`+meta+`}}`,
		`{"method":"notifications/cancelled","params":{"requestId":"L"}}`,
		`{"id":9,"method":"tools/call","params":{"name":"touch","arguments":{"uri":"test://touched"},`+meta+`}}`,
	)
	const info = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"modern","version":"1.0.0"}}`
	const touched = `"result":{"resultType":"complete","content":[{"type":"text","text":"touched test://touched"}],` +
		info + `}}`
	want := []string{
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"unsupported protocol version","data":{"supported":["2026-07-28"],"requested":"2025-06-18"}}}`,
		`{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"missing protocolVersion or clientCapabilities in _meta"}}`,
		`{"jsonrpc":"2.0","id":3,"error":{"code":-32022,"message":"unsupported protocol version","data":{"supported":["2026-07-28"],"requested":"2099-01-01"}}}`,
		`{"jsonrpc":"2.0","id":4,"error":{"code":-32021,"message":"confirm needs elicitation","data":{"requiredCapabilities":{"elicitation":{}}}}}`,
		`{"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"the requestState is not mine"}}`,
		`{"jsonrpc":"2.0","id":6,"result":{"resultType":"input_required","requestState":"round 1",` + info + `}}`,
		`{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","content":[{"type":"text","text":"waited 1 rounds"}],` + info + `}}`,
		`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L"},"notifications":{"resourceSubscriptions":["test://touched"]}}}`,
		`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L"},"uri":"test://touched"}}`,
		`{"jsonrpc":"2.0","id":8,` + touched,
		`{"jsonrpc":"2.0","id":"L","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"L"}}}`,
		`{"jsonrpc":"2.0","id":9,` + touched,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestEverythingHTTP(t *testing.T) {
	for _, kind := range []string{"legacy", "modern"} {
		t.Run(kind, func(t *testing.T) {
			program, args, env := mcptest.ServerCommand(t, "everything-http", kind)
			cmd := exec.CommandContext(t.Context(), program, args...)
			cmd.Env = append(os.Environ(), env...)
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = cmd.Wait() }()
			defer func() { _ = cmd.Process.Kill() }()
			url, err := bufio.NewReader(stdout).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			session := connectTo(t, "", &mcp.StreamableClientTransport{Endpoint: strings.TrimSpace(url),
				DisableStandaloneSSE: true})
			if got := call(t, session, "add", map[string]any{"a": 1, "b": 2}); got != "3" {
				t.Errorf("add says %q", got)
			}
		})
	}
}
