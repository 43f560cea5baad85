package agentrpc_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/internal/agentrpc"
)

func TestACPListsSessions(t *testing.T) {
	c, host := acp(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	host.listed = []agentrpc.ListedSession{
		{Dir: "/a", SessionInfo: agent.SessionInfo{ID: "named", Name: "a name", FirstPrompt: "p", Updated: at}},
		{Dir: "/a", SessionInfo: agent.SessionInfo{ID: "damaged", Err: "line 2 is damaged"}},
		{Dir: "/a", SessionInfo: agent.SessionInfo{ID: "plain", FirstPrompt: " first \x1b[31m line\nsecond"}},
		{Dir: "/b", SessionInfo: agent.SessionInfo{ID: "long", FirstPrompt: strings.Repeat("é", 100)}},
	}
	for i := range 120 {
		host.listed = append(host.listed, agentrpc.ListedSession{Dir: "/many",
			SessionInfo: agent.SessionInfo{ID: fmt.Sprintf("m%d", i)}})
	}
	c.openACP()
	for _, tt := range []struct{ params, want string }{
		{`{"cwd":"/a"}`, `"result":{"sessions":[{"sessionId":"named","cwd":"/a","title":"a name","updatedAt":"2026-01-02T03:04:05Z"},` +
			`{"sessionId":"plain","cwd":"/a","title":"first \\u001b[31m line"}]}}`},
		{`{"cwd":"/none","cursor":null}`, `"result":{"sessions":[]}}`},
		{`{"cwd":"/b"}`, strings.Repeat("é", 58) + `…"}]}}`},
		{`{"cwd":"/many"}`, `{"sessionId":"m99","cwd":"/many"}],"nextCursor":"m99"}}`},
		{`{"cwd":"/many","cursor":"m99"}`, `"result":{"sessions":[{"sessionId":"m100"`},
		{`{"cwd":"/many","cursor":"m119"}`, `"result":{"sessions":[]}}`},
		{`{"cwd":"/many","cursor":"gone"}`, `"code":-32602`},
		{`{"cwd":"here"}`, `"code":-32602`},
		{`{"cwd":"/broken"}`, `"code":-32603,"message":"the directory cannot be read"`},
		{``, `{"sessionId":"named"`},
	} {
		line := `{"jsonrpc":"2.0","id":7,"method":"session/list"`
		if tt.params != "" {
			line += `,"params":` + tt.params
		}
		c.send("%s}", line)
		if got := c.until(`"id":7`); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %s", tt.params, got, tt.want)
		}
	}
}
