//go:build !nomcp

package gateway_test

import (
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// stateFeatures are those of the requestState that a stateless client carries from one request to the next. What sends
// one that it cannot have is refused, in every cell.
func stateFeatures() []feature {
	const (
		foreign = "-32602 tools/call: requestState: it was not given out for this request"
		used    = "-32602 call ask on up: requestState: no call waits for it: it was used before, or the call has ended"
	)
	return []feature{
		{name: "a state without questions", prove: func(b *box) string {
			m := b.asker().tool("again", `{"times":3}`)
			if m.Error == nil && textOf(m) != "came back 3 times" {
				b.Errorf("it answers %s", m.Result)
			}
			return refusalOf(m)
		}, refused: [...]string{noState, "", "", noState}},
		{name: "requestState, used again", prove: func(b *box) string {
			if b.cell.client == drawbridge.Legacy { // never had one
				return b.retried(func(params, state string) (string, string) { return params, state })
			}
			c, params, retry := b.askedOnce()
			if m := c.do(mcp.MethodToolsCall, retry(params)); !answered(m) {
				b.Errorf("the first retry is answered with %s%s", m.Result, m.Error)
			}
			m := c.do(mcp.MethodToolsCall, retry(params))
			if m.Error == nil && !answered(m) {
				b.Errorf("the second retry is answered with %s", m.Result)
			}
			return refusalOf(m)
		}, refused: [...]string{foreign, "", foreign, used}},
		{name: "requestState, changed", prove: func(b *box) string {
			return b.retried(func(params, state string) (string, string) {
				i := len(state) / 2
				other := "A"
				if state[i] == 'A' {
					other = "B"
				}
				return params, state[:i] + other + state[i+1:]
			})
		}, refused: refusedFor(foreign, foreign)},
		{name: "requestState, cut off", prove: func(b *box) string {
			return b.retried(func(params, state string) (string, string) { return params, state[:len(state)-8] })
		}, refused: refusedFor(foreign, foreign)},
		{name: "requestState, of other arguments", prove: func(b *box) string {
			return b.retried(func(params, state string) (string, string) {
				return strings.Replace(params, `["form"]`, `["form"],["form"]`, 1), state
			})
		}, refused: refusedFor(foreign, foreign)},
		{name: "requestState, of another tool", prove: func(b *box) string {
			return b.retried(func(params, state string) (string, string) {
				return strings.Replace(params, "up__ask", "up__echo", 1), state
			})
		}, refused: refusedFor(foreign, foreign)},
		{name: "requestState, made up", prove: func(b *box) string {
			return b.retried(func(params, _ string) (string, string) { return params, "é \"\\ null" })
		}, refused: refusedFor(foreign, foreign)},
	}
}

const noState = "-32601 this generation has no requestState"

// answered reports whether a call of ask ended with the answers to one form.
func answered(m mcp.Message) bool {
	return string(rawjson.Get(m.Result, "structuredContent", "answers")) == "[["+formAnswer+"]]"
}

// askedOnce returns a client that was asked for a form, and what makes a retry of the params.
func (b *box) askedOnce() (c *client, params string, retry func(params string) string) {
	b.Helper()
	c, params = b.asker(), toolParams("ask", `{"rounds":[["form"]]}`)
	m := c.do(mcp.MethodToolsCall, params)
	if len(questionsIn(m.Result)) != 1 {
		b.Fatalf("it asks nothing: %s%s", m.Result, m.Error)
	}
	return c, params, func(params string) string { return c.retry(params, m.Result) }
}

// retried retries a call whose state was spoiled, and returns the refusal. A stateful client, who never saw a state,
// makes one up. Afterwards the call goes on as if nothing had been.
func (b *box) retried(spoil func(params, state string) (string, string)) string {
	b.Helper()
	c, params := b.asker(), toolParams("ask", `{"rounds":[["form"]]}`)
	state, good := strings.Repeat("made up ", 8), params
	if c.era == drawbridge.Modern {
		_, _, retry := b.askedOnce()
		good = retry(params)
		state = rawjson.GetString([]byte(good), "requestState")
	}
	bad, state := spoil(good, state)
	bad = string(rawjson.Apply([]byte(bad), rawjson.Put(rawjson.Quote(state), "requestState")))
	m := c.do(mcp.MethodToolsCall, bad)
	if m.Error == nil {
		b.Errorf("it is answered with %s", m.Result)
	}
	if m := c.do(mcp.MethodToolsCall, good); !answered(m) {
		b.Errorf("afterwards the call is answered with %s%s", m.Result, m.Error)
	}
	return refusalOf(m)
}

// wordFeatures are requests that one generation has and the other has not: who sends one of the other's is told so.
func wordFeatures() []feature {
	asking := func(method, params string) func(b *box) string {
		return func(b *box) string { return refusalOf(b.plain().do(method, params)) }
	}
	gone := func(method string) string { return "-32601 Method not found: " + method }
	return []feature{
		{name: "ping", prove: asking(mcp.MethodPing, `{}`), refused: refusedFor("", gone("ping"))},
		{name: "logging/setLevel", prove: asking(mcp.MethodSetLevel, `{"level":"error"}`), refused: refusedFor("",
			gone("logging/setLevel")), alone: true},
		{name: "logging/setLevel, to no such level", prove: asking(mcp.MethodSetLevel, `{"level":"loud"}`),
			refused: refusedFor(`-32602 logging/setLevel: no such log level "loud"`, gone("logging/setLevel"))},
		{name: "resources/subscribe", prove: asking(mcp.MethodSubscribe, `{"uri":"`+watched+`"}`),
			refused: refusedFor("", gone("resources/subscribe")), alone: true},
		{name: "initialize", prove: func(b *box) string {
			c := b.plain() // has done so in the stateful generation
			if c.era == drawbridge.Legacy {
				return ""
			}
			return refusalOf(c.do(mcp.MethodInitialize,
				`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`))
		}, refused: refusedFor("", gone("initialize"))},
		{name: "server/discover", prove: asking(mcp.MethodDiscover, `{}`),
			refused: refusedFor(gone("server/discover"), "")},
		{name: "subscriptions/listen", prove: func(b *box) string {
			c := b.plain()
			if c.era == drawbridge.Modern {
				c.listen(allChanges).giveUp()
				return ""
			}
			return refusalOf(c.do(mcp.MethodListen, `{"notifications":`+allChanges+`}`))
		}, refused: refusedFor(gone("subscriptions/listen"), "")},
		{name: "a batch, of 2025-03-26", prove: func(b *box) string { return proveBatch(b, mcp.Version20250326) },
			refused: refusedFor("", noBatch)},
		{name: "a batch, of 2024-11-05", prove: func(b *box) string { return proveBatch(b, mcp.Version20241105) },
			refused: refusedFor("", noBatch)},
		{name: "a batch, of a later revision", prove: func(b *box) string { return proveBatch(b, mcp.Version20251125) },
			refused: refusedFor(noBatch, noBatch)},
	}
}

const noBatch = "-32600 This revision has no batches"

// proveBatch sends two calls and a notification at once.
func proveBatch(b *box, protocol string) string {
	c := b.clientOf(b.T, b.cell.client, protocol, b.path.door, "")
	call := func(id, text string) string {
		params := c.dressed(toolParams("echo", `{"text":"`+text+`"}`))
		return `{"jsonrpc":"2.0","id":"` + id + `","method":"tools/call","params":` + string(params) + `}`
	}
	body := `[` + call("a", "one") + `,{"jsonrpc":"2.0","method":"notifications/unheard_of"},` + call("b", "two") + `]`
	responses := 2
	if b.cell.client == drawbridge.Modern || protocol == mcp.Version20251125 {
		responses = 1
	}
	all, err := c.line.batch(c.ctx, []byte(body), responses)
	if err != nil {
		b.Fatal(err)
	}
	if len(all) == 1 {
		return refusalOf(all[0])
	}
	got := ""
	for _, m := range all {
		got += fmt.Sprintf("%s %s\n", m.ID, textOf(m))
	}
	if got != "\"a\" one\n\"b\" two\n" {
		b.Errorf("the answers are\n%s", got)
	}
	return ""
}
