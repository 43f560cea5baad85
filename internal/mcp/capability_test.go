package mcp_test

import (
	"encoding/json"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

func TestMayAsk(t *testing.T) {
	for _, tt := range []struct {
		capabilities, method, params string
		want                         bool
	}{
		{`{"roots":{}}`, mcp.MethodRootsList, ``, true},
		{`{"roots":null}`, mcp.MethodRootsList, ``, false},
		{`{}`, mcp.MethodRootsList, ``, false},
		{``, mcp.MethodSampling, `{}`, false},
		{`{"sampling":{}}`, mcp.MethodSampling, `{"messages":[]}`, true},
		{`{"sampling":{}}`, mcp.MethodSampling, `{"messages":[],"tools":[]}`, false},
		{`{"sampling":{"tools":{}}}`, mcp.MethodSampling, `{"messages":[],"tools":[],"toolChoice":{"mode":"auto"}}`,
			true},
		{`{"elicitation":{}}`, mcp.MethodElicitation, `{"message":"?"}`, true},
		{`{"elicitation":{"form":{}}}`, mcp.MethodElicitation, `{"mode":"form"}`, true},
		{`{"elicitation":{"url":{}}}`, mcp.MethodElicitation, `{"mode":"form"}`, false},
		{`{"elicitation":{}}`, mcp.MethodElicitation, `{"mode":"url"}`, false},
		{`{"elicitation":{"form":{},"url":{}}}`, mcp.MethodElicitation, `{"mode":"url"}`, true},
		{`{"roots":{},"sampling":{},"elicitation":{}}`, "tools/call", `{}`, false},
	} {
		if got := mcp.ClientAcceptsRequest(json.RawMessage(tt.capabilities), tt.method,
			json.RawMessage(tt.params)); got != tt.want {
			t.Errorf("a client with %s, asked %s %s: got %t", tt.capabilities, tt.method, tt.params, got)
		}
	}
}

func TestMayAskBy(t *testing.T) {
	const x, y = `{"extensions":{"com.example/x":{}}}`, `{"experimental":{"com.example/x":{"a":1}}}`
	for _, tt := range []struct {
		client, server, method string
		want                   bool
	}{
		{x, y, "x/choose", true},
		{x, `{"extensions":{"com.example/y":{}}}`, "x/choose", false},
		{`{"extensions":{"com.example/x":null}}`, y, "x/choose", false},
		{x, y, "tools/call", false},
		{x, y, mcp.MethodRootsList, false},
		{`{"extensions":{"io.modelcontextprotocol/ui":{}}}`, `{"extensions":{"io.modelcontextprotocol/ui":{}}}`,
			"ui/open", false},
		{`{"roots":{}}`, `{}`, mcp.MethodRootsList, true},
		{`{"tasks":{}}`, `{}`, "tasks/get", true},
		{`{}`, `{}`, "tasks/get", false},
	} {
		if got := mcp.ServerMayRequest(json.RawMessage(tt.client), json.RawMessage(tt.server), tt.method,
			nil); got != tt.want {
			t.Errorf("a client with %s, asked %s by a server with %s: got %t", tt.client, tt.method, tt.server, got)
		}
	}
}
