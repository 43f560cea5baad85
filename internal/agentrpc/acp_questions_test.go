package agentrpc_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
)

// TestACPElicitation has a client that can ask a person for values and to open a page.
func TestACPElicitation(t *testing.T) {
	const form, schema = "ask_form", `{"requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`
	for _, tt := range []struct{ name, tool, arguments, asked, answer, want string }{
		{"accept", form, schema, `"mode":"form","message":"The server srv asks: please","requestedSchema":{"type":"object","properties"`,
			`"result":{"action":"accept","content":{"a":"x"}}`, `allow=true always=false {\"a\":\"x\"}`},
		{"no content", form, schema, `"toolCallId":"c1"`, `"result":{"action":"accept"}`, `allow=true always=false {}`},
		{"not an object", form, schema, `"form"`, `"result":{"action":"accept","content":[1]}`, `allow=true always=false {}`},
		{"decline", form, schema, `"form"`, `"result":{"action":"decline","content":{"a":"x"}}`, `allow=false always=false "`},
		{"unknown action", form, schema, `"form"`, `"result":{"action":"later"}`, `allow=false always=false "`},
		{"null", form, schema, `"form"`, `"result":null`, `allow=false always=false "`},
		{"error", form, schema, `"form"`, `"error":{"code":-32603,"message":"no screen"}`, `allow=false always=false "`},
		{"page", "ask_url", `{}`, `"mode":"url","message":"The server srv asks: please","elicitationId":"q1","url":"https://example.com/"`,
			`"result":{"action":"accept","content":{"a":1}}`, `allow=true always=false "`},
		{"page declined", "ask_url", `{}`, `"url"`, `"result":{"action":"cancel"}`, `allow=false always=false "`},
		{"no schema", form, `{}`, "", "", `allow=false always=false "`},
		{"not a page", "ask_url", `{"url":"javascript:alert(1)"}`, "", "", `allow=false always=false "`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, host := acp(t, calls(tt.tool, tt.arguments), says("done", drawbridge.StopEnd))
			id := c.openACPWith(`{"elicitation":{"form":{},"url":{}}}`)
			if !host.elicitation {
				t.Error("the host does not know that the client can ask")
			}
			c.prompt(1, id, `{"type":"text","text":"p"}`)
			if tt.asked != "" {
				if got := c.until("elicitation/create"); !strings.Contains(got, tt.asked) {
					t.Errorf("%s is not in %s", tt.asked, got)
				}
				c.send(`{"jsonrpc":"2.0","id":1,%s}`, tt.answer)
			}
			if got := c.until(`"status":"completed"`); !strings.Contains(got, tt.want) {
				t.Errorf("%s, want %s", got, tt.want)
			}
			c.until("end_turn")
		})
	}
}

// TestACPSampling has a server that asks for an answer of the model: a person allows each one.
func TestACPSampling(t *testing.T) {
	const arguments = `{"messages":[{"role":"user","content":{"type":"text","text":"of the server"}}]}`
	for choice, want := range map[string]string{"allow_once": `sampled`, "reject_once": "allow=false", "allow_always": "allow=false"} {
		t.Run(choice, func(t *testing.T) {
			all := []drawbridge.ModelResponse{calls("ask_sampling", arguments), says("done", drawbridge.StopEnd)}
			if choice == "allow_once" {
				all = append(all[:1], says("sampled", drawbridge.StopEnd), all[1])
			}
			c, _ := acp(t, all...)
			id := c.openACP()
			c.prompt(1, id, `{"type":"text","text":"p"}`)
			asked := c.until("session/request_permission")
			if !strings.Contains(asked, "of the server") || strings.Contains(asked, "allow_always") {
				t.Error(asked)
			}
			c.send(`{"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"selected","optionId":%q}}}`, choice)
			if got := c.until(`"status":"completed"`); !strings.Contains(got, want) {
				t.Errorf("%s, want %s", got, want)
			}
			c.until("end_turn")
		})
	}
}

// TestACPNotices has a client that shows notices beside the conversation.
func TestACPNotices(t *testing.T) {
	c, host := acp(t, calls("ask_form", `{}`), says("done", drawbridge.StopEnd))
	id := c.openACPWith(`{"session":{"notices":{}},"elicitation":{"form":null}}`)
	if host.elicitation {
		t.Error("the host takes a client for one that can ask")
	}
	c.prompt(1, id, `{"type":"text","text":"p"}`)
	if got := updates([]string{c.until("this was declined")}); len(got) != 1 ||
		!strings.HasPrefix(got[0], `{"sessionUpdate":"notice","title":"The server srv asked for values`) {
		t.Error(got)
	}
	c.until("end_turn")
}

// TestACPWithoutCapabilities has clients whose capabilities are absent or of another form.
func TestACPWithoutCapabilities(t *testing.T) {
	for _, params := range []string{"", `,"params":{}`, `,"params":{"clientCapabilities":7}`, `,"params":{"clientCapabilities":{"session":[]}}`} {
		c, _ := acp(t)
		c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize"%s}`, params)
		if got := c.next(); !strings.Contains(got, `"protocolVersion":1`) {
			t.Errorf("%s: %s", params, got)
		}
	}
}

// TestACPPlan shows a plan to the person. A yes ends the plan mode, which the client is told.
func TestACPPlan(t *testing.T) {
	for choice, mode := range map[string]agent.PermissionMode{"allow_once": agent.AskFirst, "reject_once": agent.PlanOnly, "allow_always": agent.PlanOnly} {
		t.Run(choice, func(t *testing.T) {
			c, _ := acp(t, calls("ask_plan", `{}`), says("done", drawbridge.StopEnd))
			id := c.openACP()
			c.send(`{"jsonrpc":"2.0","id":7,"method":"session/set_mode","params":{"sessionId":%q,"modeId":"plan"}}`, id)
			c.until(`"id":7`)
			c.prompt(1, id, `{"type":"text","text":"p"}`)
			asked := c.until("session/request_permission")
			if !strings.Contains(asked, `please`) || !strings.Contains(asked, `"kind":"switch_mode"`) || strings.Contains(asked, "allow_always") {
				t.Error(asked)
			}
			c.send(`{"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"selected","optionId":%q}}}`, choice)
			if mode == agent.AskFirst {
				c.until(`"sessionUpdate":"current_mode_update","currentModeId":"default"`)
			}
			if got := c.until(`"status":"completed"`); !strings.Contains(got, "allow="+strconv.FormatBool(mode == agent.AskFirst)) {
				t.Error(got)
			}
			c.until("end_turn")
		})
	}
}
