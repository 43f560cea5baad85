//go:build !nomcp

package gateway

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/sandbox"
)

// TestResultsEndWithTheSessionOfAClient tells the gateway of the begin and the end of sessions, as its server does.
func TestResultsEndWithTheSessionOfAClient(t *testing.T) {
	g := open(t, Config{Servers: []config.Server{row(t, "every", "everything")}, Discovery: &config.ToolDiscovery{Mode: "code"}})
	caller := g.Owner()
	caller.Session = "one"
	call := func(code string) string {
		result, err := g.Deck().Call(t.Context(), drawbridge.Call{Caller: caller,
			Params: json.RawMessage(`{"name":"run_python","arguments":{"code":"` + code + `"}}`)})
		if errors.Is(err, sandbox.ErrNoInterpreter) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		return string(result.Raw)
	}
	var kept struct {
		StructuredContent struct{ Value string }
	}
	if err := json.Unmarshal([]byte(call(`tools.keep('text').id`)), &kept); err != nil {
		t.Fatal(err)
	}
	read := `tools.result('` + kept.StructuredContent.Value + `').text()`
	other := caller
	other.Session = "two"
	g.onSession(other, false)
	g.onSession(caller, true)
	if text := call(read); !strings.Contains(text, `"value":"text"`) {
		t.Errorf("in the session: %s", text)
	}
	g.onSession(caller, false)
	if text := call(read); !strings.Contains(text, "unknown result "+kept.StructuredContent.Value) {
		t.Errorf("after the session: %s", text)
	}
}
