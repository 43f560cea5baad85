package agentrpc_test

import (
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
)

// TestACPShowsWhatCallsDo has calls whose results an editor shows in a form of its own. A loaded session shows the same.
func TestACPShowsWhatCallsDo(t *testing.T) {
	text := func(s string) string { return `{"content":[{"type":"text","text":"` + s + `"}]` }
	for _, tt := range []struct{ tool, arguments, result, started, finished string }{
		{"edit", `{"path":"a.txt","oldText":"x","newText":"y"}`, text("Replaced 1") + `,"structuredContent":{"replacements":1}}`,
			`"content":[{"type":"diff","path":"/tmp/a.txt","oldText":"x","newText":"y"}],"toolCallId"`,
			`"content":[{"type":"diff","path":"/tmp/a.txt","oldText":"x","newText":"y"}],"toolCallId":"c1","status":"completed",` +
				`"rawOutput":{"replacements":1}`},
		{"edit", `{"path":"/b","edits":[{"oldText":"1","newText":"2"},{"oldText":"3"}]}`, text("no such text") + `,"isError":true}`,
			`"content":[{"type":"diff","path":"/b","oldText":"1","newText":"2"},{"type":"diff","path":"/b","oldText":"3","newText":""}]`,
			`"content":[{"type":"content","content":{"type":"text","text":"Error: no such text"}}],"toolCallId":"c1","status":"failed"`},
		{"write", `{"path":"a.txt","content":"all"}`, text("Saved") + `}`,
			`"content":[{"type":"diff","path":"/tmp/a.txt","newText":"all"}]`, `{"type":"diff","path":"/tmp/a.txt","newText":"all"}`},
		{"srv__edit", `{"path":"a.txt","oldText":"x","newText":"y"}`, text("t") + `}`,
			`"title":"srv__edit","kind":"other","status":"in_progress","rawInput"`, `"content":[{"type":"content"`},
		{"picture", `{}`, `{"content":[{"type":"image","mimeType":"image/png","data":"AAAA"}]}`, `"title":"picture"`,
			`{"type":"content","content":{"type":"image","data":"AAAA","mimeType":"image/png"}}`},
		{"todo_set", `{"items":[]}`, text("t") + `,"structuredContent":{"items":[{"id":"1","text":"a","status":"done"},` +
			`{"id":"2","text":"b","status":"active"}]}}`, `"kind":"think"`,
			`{"sessionUpdate":"plan","entries":[{"content":"a","priority":"medium","status":"completed"},` +
				`{"content":"b","priority":"medium","status":"in_progress"}]}`},
		{"todo", `{"action":"set"}`, text("t") + `,"structuredContent":{"items":[{"text":"a","state":"pending","weight":"high"},` +
			`{"text":"b","state":"dropped","weight":"low"}]}}`, `"kind":"think"`,
			`{"sessionUpdate":"plan","entries":[{"content":"a","priority":"high","status":"pending"}]}`},
		{"todo_read", `{}`, text("empty") + `,"structuredContent":{"items":[]}}`, `"kind":"read"`, `{"sessionUpdate":"plan","entries":[]}`},
	} {
		t.Run(tt.tool, func(t *testing.T) {
			host := &scriptedHost{}
			host.tools.results = map[string]string{tt.tool: tt.result}
			c := serveACP(t, host, calls(tt.tool, tt.arguments), says("done", drawbridge.StopEnd))
			id := c.openACP()
			c.prompt(1, id, `{"type":"text","text":"p"}`)
			ran := strings.Join(updates(c.all(`"id":1,`)), "\n")
			for _, want := range []string{tt.started, tt.finished} {
				if !strings.Contains(ran, want) {
					t.Errorf("%s is not in\n%s", want, ran)
				}
			}
			if strings.Contains(tt.tool, "__") && strings.Contains(ran, "diff") {
				t.Errorf("a tool of a server is taken for one of Drawbridge: %s", ran)
			}
			c.send(`{"jsonrpc":"2.0","id":2,"method":"session/close","params":{"sessionId":%q}}`, id)
			c.until(`"id":2,`)
			c.send(`{"jsonrpc":"2.0","id":3,"method":"session/load","params":{"sessionId":%q,"cwd":"/tmp","mcpServers":[]}}`, id)
			replay := strings.Join(updates(c.all(`"id":3,`)), "\n")
			if !strings.HasSuffix(replay, ran) {
				t.Errorf("the replay is\n%s\nwant\n%s", replay, ran)
			}
		})
	}
}

func TestACPShowsUsage(t *testing.T) {
	host := &scriptedHost{window: 1000}
	c := serveACP(t, host, says("one", drawbridge.StopEnd))
	id := c.openACP()
	c.prompt(1, id, `{"type":"text","text":"p"}`)
	if got := c.until("usage_update"); !strings.Contains(got, `"used":11,"size":1000,"cost":{"amount":11,"currency":"USD"}`) {
		t.Error(got)
	}
	c.until("end_turn")
}
