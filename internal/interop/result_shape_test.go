package interop

import (
	"encoding/json"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

func TestCheckResultShape(t *testing.T) {
	for _, tt := range []struct{ method, result, want string }{
		{mcp.MethodToolsCall, `{"content":[{"type":"text","text":"x"}]}`, ""},
		{mcp.MethodToolsCall, `{"structuredContent":{}}`, ""},
		{mcp.MethodToolsCall, `{"content":{"type":"text","text":"x"}}`, `malformed response: "content" is not a list`},
		{mcp.MethodToolsCall, `{"content":"x"}`, `malformed response: "content" is not a list`},
		{mcp.MethodToolsCall, `{"content":["x"]}`, `malformed response: an element of "content" is not an object`},
		{mcp.MethodResourcesRead, `{"contents":{}}`, `malformed response: "contents" is not a list`},
		{mcp.MethodPromptsGet, `{"messages":null}`, `malformed response: "messages" is not a list`},
		{mcp.MethodPromptsGet, `{"messages":[]}`, ""},
		{mcp.MethodPromptsGet, `{"resultType":"input_required","inputRequests":{},"messages":null}`, ""},
		{"vendor/method", `{"content":5}`, ""},
	} {
		got := ""
		if err := CheckResultShape(tt.method, json.RawMessage(tt.result)); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s %s: got %q, want %q", tt.method, tt.result, got, tt.want)
		}
	}
}
