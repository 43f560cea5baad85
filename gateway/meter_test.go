//go:build !nomcp

package gateway_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// TestBoundsHoldForEachNewConnection calls with a session of its own each time: neither a quota nor a pace begins again
// with it.
func TestBoundsHoldForEachNewConnection(t *testing.T) {
	paced := strings.TrimSuffix(string(mcptest.ServerRow(t, "everything")), "}") + `,"max_calls_per_minute":2}`
	r := runGateway(t, fmt.Sprintf(`{"mcpServers":{"free":%s,"paced":%s}}`, mcptest.ServerRow(t, "everything"), paced),
		"[tools]\nmax_tool_calls_per_session = 4\n")
	call := func(server string) string {
		caller, end := r.NewCaller(nil)
		defer end()
		_, err := r.Deck().Call(t.Context(), drawbridge.Call{Caller: caller, Params: json.RawMessage(`{"name":"` +
			server + `__echo","arguments":{"text":"x"}}`)})
		if f, ok := errors.AsType[*drawbridge.Fault](err); ok {
			return string(f.Code) + " " + f.Err.Error()
		}
		return ""
	}
	const slow = "rate_limited rate limit exceeded for server 'paced' (max 2/min)"
	const spent = "policy_blocked quota_blocked: all 4 tool calls of this session are used"
	for i, c := range [][2]string{{"paced", ""}, {"paced", ""}, {"paced", slow}, {"free", ""}, {"free", ""},
		{"free", spent}, {"paced", slow}} {
		if got := call(c[0]); got != c[1] {
			t.Errorf("call %d of %s: %q, want %q", i, c[0], got, c[1])
		}
	}
}
