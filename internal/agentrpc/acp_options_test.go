package agentrpc_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
)

func TestACPOptions(t *testing.T) {
	c, host := acp(t, says("a", drawbridge.StopEnd))
	id := c.openACP()
	set := func(params string) string {
		c.send(`{"jsonrpc":"2.0","id":1,"method":"session/set_config_option","params":{"sessionId":%q,%s}}`, id, params)
		return strings.Join(c.all(`"id":1,`), "\n")
	}
	for _, tt := range []struct{ params, want string }{
		{`"configId":"model","value":"test/b"`, `"currentValue":"test/b","options":[{"value":"test/a","name":"test/a"},{"value":"test/b"`},
		{`"configId":"model","value":"test/c"`, `"code":-32602,"message":"unknown model"`},
		{`"configId":"mode","value":"plan"`, `"sessionUpdate":"current_mode_update","currentModeId":"plan"`},
		{`"configId":"mode","value":"all"`, `"code":-32602,"message":"change the permission mode: there is no mode`},
		{`"configId":"thinking","value":"default"`, `"currentValue":"default","options":[{"value":"default"`},
		{`"configId":"thinking","value":"high"`, `"currentValue":"high","options":[{"value":"off"`},
		{`"configId":"thinking","value":"default"`, `"code":-32602`},
		{`"configId":"thinking","value":"huge"`, `"code":-32602`},
		{`"configId":"color","value":"red"`, `"code":-32602,"message":"unknown option`},
		{`"configId":"mode","type":"boolean","value":true`, `"code":-32602,"message":"value is not a string"`},
		{`"configId":"mode"`, `"code":-32602`},
	} {
		if got := set(tt.params); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %s", tt.params, got, tt.want)
		}
	}
	c.prompt(2, id, `{"type":"text","text":"who"}`)
	c.until("I am b")
	c.until("end_turn")
	var last agent.Settings
	for e := range host.histories[id].Entries(t.Context()) {
		if e.Settings != nil && e.Settings.Thinking != "" {
			last = *e.Settings
		}
	}
	if last.Thinking != "high" {
		t.Errorf("the history has the settings %+v", last)
	}
}

// TestACPCloseWhileAModelIsLookedFor closes a session while the host looks for a model that it does not find.
func TestACPCloseWhileAModelIsLookedFor(t *testing.T) {
	c, _ := acp(t)
	id := c.openACP()
	c.send(`{"jsonrpc":"2.0","id":1,"method":"session/set_config_option","params":{"sessionId":%q,"configId":"model","value":"test/waits"}}`, id)
	c.send(`{"jsonrpc":"2.0","id":2,"method":"session/close","params":{"sessionId":%q}}`, id)
	c.until(`"id":1,"error"`)
	c.until(`"id":2,"result"`)
}

// TestACPSlowModels has a host whose models are known late: the session is open before, and the client is told later.
func TestACPSlowModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := &scriptedHost{slow: make(chan struct{})}
		c := serveACP(t, host)
		c.openACP() // returns after openTime
		close(host.slow)
		if got := c.until("config_option_update"); !strings.Contains(got, `{"value":"test/b","name":"test/b"}`) {
			t.Error(got)
		}
		if err := c.end(); err != nil {
			t.Error(err)
		}
	})
}

// TestACPCancelRequest cancels a prompt by the ID of its request.
func TestACPCancelRequest(t *testing.T) {
	c, _ := acp(t, says("begins", "wait"))
	id := c.openACP()
	c.prompt(1, id, `{"type":"text","text":"p"}`)
	c.until("begins")
	for _, request := range []string{`2`, `"1"`, `null`, `{}`} {
		c.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%s}}`, request)
	}
	c.prompt(3, id, `{"type":"text","text":"q"}`)
	c.until(`"id":3,"error"`) // the first prompt still runs
	c.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`)
	if got := c.until(`"id":1,`); !strings.Contains(got, "cancelled") {
		t.Error(got)
	}
	c.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`)
}
