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
