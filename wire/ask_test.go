package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

func TestMayAsk(t *testing.T) {
	for _, tt := range []struct {
		capabilities, method, params string
		want                         bool
	}{
		{`{"roots":{}}`, wire.MethodRootsList, ``, true},
		{`{"roots":null}`, wire.MethodRootsList, ``, false},
		{`{}`, wire.MethodRootsList, ``, false},
		{``, wire.MethodSampling, `{}`, false},
		{`{"sampling":{}}`, wire.MethodSampling, `{"messages":[]}`, true},
		{`{"sampling":{}}`, wire.MethodSampling, `{"messages":[],"tools":[]}`, false},
		{`{"sampling":{"tools":{}}}`, wire.MethodSampling, `{"messages":[],"tools":[],"toolChoice":{"mode":"auto"}}`, true},
		{`{"elicitation":{}}`, wire.MethodElicitation, `{"message":"?"}`, true},
		{`{"elicitation":{"form":{}}}`, wire.MethodElicitation, `{"mode":"form"}`, true},
		{`{"elicitation":{"url":{}}}`, wire.MethodElicitation, `{"mode":"form"}`, false},
		{`{"elicitation":{}}`, wire.MethodElicitation, `{"mode":"url"}`, false},
		{`{"elicitation":{"form":{},"url":{}}}`, wire.MethodElicitation, `{"mode":"url"}`, true},
		{`{"roots":{},"sampling":{},"elicitation":{}}`, "tools/call", `{}`, false},
	} {
		if got := wire.MayAsk(json.RawMessage(tt.capabilities), tt.method, json.RawMessage(tt.params)); got != tt.want {
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
		{x, y, wire.MethodRootsList, false},
		{`{"extensions":{"io.modelcontextprotocol/ui":{}}}`, `{"extensions":{"io.modelcontextprotocol/ui":{}}}`, "ui/open", false},
		{`{"roots":{}}`, `{}`, wire.MethodRootsList, true},
		{`{"tasks":{}}`, `{}`, "tasks/get", true},
		{`{}`, `{}`, "tasks/get", false},
	} {
		if got := wire.MayAskBy(json.RawMessage(tt.client), json.RawMessage(tt.server), tt.method, nil); got != tt.want {
			t.Errorf("a client with %s, asked %s by a server with %s: got %t", tt.client, tt.method, tt.server, got)
		}
	}
}
