//go:build !nomcp

package gateway_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
	"github.com/google/go-cmp/cmp"
)

// callFeatures are those of a plain call and its end.
func callFeatures() []feature {
	return []feature{
		{name: "plain call", prove: func(b *box) string {
			if got := textOf(b.plain().tool("echo", `{"text":"hé \u003c"}`)); got != "hé <" {
				b.Errorf("echo says %q", got)
			}
			return ""
		}},
		{name: "error of a tool", prove: func(b *box) string {
			m := b.plain().tool("fail", `{}`)
			if string(rawjson.Get(m.Result, "isError")) != "true" || textOf(m) != "this tool always fails" {
				b.Errorf("it answers %s%s", m.Result, m.Error)
			}
			return ""
		}},
		{name: "error of a server", prove: func(b *box) string {
			if m := b.plain().tool("broken", `{}`); string(m.Error) != mcptest.BrokenError {
				b.Errorf("it answers %s%s", m.Result, m.Error)
			}
			return ""
		}},
		{name: "_meta and traceparent", prove: proveMeta},
		{name: "capabilities are the caller's own", prove: func(b *box) string {
			caps := `{"elicitation":{"form":{}},"experimental":{"x":{"n":9007199254740993}}}`
			m := b.client(b.T, b.cell.client, b.path.door, caps).tool("caps", `{}`)
			if got := string(rawjson.Get(m.Result, "structuredContent", "capabilities")); !strings.Contains(got,
				`"form":{}`) || strings.Contains(got, "sampling") {
				b.Errorf("the server hears of %s", got)
			}
			return ""
		}},
		{name: "cancelled by the client", prove: func(b *box) string {
			c, before := b.plain(), len(b.records())
			p := c.start(mcp.MethodToolsCall, toolParams("wait", `{}`))
			b.awaitEvent(b.T, before, "begin", "wait")
			p.giveUp()
			b.awaitEvent(b.T, before, "cancelled", "wait")
			return ""
		}},
		{name: "Mcp-Param header of a renamed card", prove: func(b *box) string { return proveRegion(b, "eu-<ü>") }},
		{name: "Mcp-Param header, empty text", prove: func(b *box) string { return proveRegion(b, "") }},
		{name: "completion", prove: proveCompletion},
	}
}

// proveMeta sends members of _meta that belong to no hop, and looks which of all arrive.
func proveMeta(b *box) string {
	const own = `"com.example/n":12345678901234567890,"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"a=1","baggage":"b=2"`
	m := b.plain().call(mcp.MethodToolsCall, `{"name":"up__meta","arguments":{},"_meta":{`+own+`}}`)
	meta := rawjson.Get(m.Result, "structuredContent", "meta")
	hop := []string{mcp.MetaProtocolVersion, mcp.MetaClientInfo, mcp.MetaClientCapabilities}
	for _, key := range hop {
		if there := rawjson.Get(meta, key) != nil; there != (b.cell.server == drawbridge.Modern) {
			b.Errorf("%s arrives: %v", key, there)
		}
	}
	if got := rawjson.GetString(meta, mcp.MetaClientInfo, "name"); b.cell.server == drawbridge.Modern &&
		got != "drawbridge" {
		b.Errorf("the server's client is %q", got)
	}
	rest := rawjson.Apply(meta, rawjson.Drop(hop[0]), rawjson.Drop(hop[1]), rawjson.Drop(hop[2]),
		rawjson.Drop(mcp.MetaProgressToken))
	if diff := cmp.Diff("{"+own+"}", string(rest)); diff != "" {
		b.Errorf("_meta (-sent +arrived):\n%s", diff)
	}
	return ""
}

// proveRegion calls a tool whose argument travels in a header too, where there are headers.
func proveRegion(b *box, region string) string {
	c := b.plain()
	c.marks = map[string][]mcp.HeaderParam{}
	for tool := range rawjson.Elements(rawjson.Get(c.do(mcp.MethodToolsList, `{}`).Result, "tools")) {
		if marks, err := mcp.ParseHeaderParams(rawjson.Get(tool, "inputSchema")); err == nil {
			c.marks[rawjson.GetString(tool, "name")] = marks
		}
	}
	if len(c.marks["up__region"]) != 1 {
		b.Fatalf("the marks are %v", c.marks)
	}
	arguments := `{"region":` + string(rawjson.Quote(region)) + `}`
	m := c.tool("region", arguments)
	want := `{"arguments":` + arguments + `,"header":null}`
	if b.cell.server == drawbridge.Modern && b.path.upstream == "HTTP" {
		want = `{"arguments":` + arguments + `,"header":` + string(rawjson.Quote(mcp.EncodeHeaderValue(region))) + `}`
	}
	if got := string(rawjson.Get(m.Result, "structuredContent")); got != want {
		b.Errorf("the server got %s%s, want %s", got, m.Error, want)
	}
	return ""
}

func proveCompletion(b *box) string {
	c := b.plain()
	for _, ref := range []string{`{"type":"ref/prompt","name":"up__ask"}`,
		`{"type":"ref/resource","uri":"talk://ask/{kinds}"}`} {
		m := c.do(mcp.MethodComplete, `{"ref":`+ref+
			`,"argument":{"name":"a","value":"a"},"context":{"arguments":{"b":"c"}}}`)
		if got := string(rawjson.Get(m.Result,
			"completion")); got != `{"values":["ada","alan"],"total":2,"hasMore":false}` {
			b.Errorf("%s completes to %s%s", ref, got, m.Error)
		}
	}
	return ""
}

// questionFeatures are those of what a server asks during a call.
func questionFeatures() []feature {
	answers := func(kind string, texts ...string) func(b *box) string {
		return func(b *box) string {
			for _, text := range texts {
				proveAnswers(b, saying(text), `[["`+kind+`"]]`, "[["+text+"]]", kind)
			}
			return ""
		}
	}
	return []feature{
		{name: "elicitation, form", prove: answers("form", formAnswer, `{"action":"decline"}`, `{"action":"cancel"}`)},
		{name: "elicitation, URL", prove: answers("url", urlAnswer, `{"action":"decline"}`, `{"action":"cancel"}`)},
		{name: "sampling", prove: answers("sampling", samplingAnswer)},
		{name: "sampling with tools", prove: answers("tools", toolsAnswer)},
		{name: "roots", prove: answers("roots", rootsAnswer, `{"roots":[]}`)},
		{name: "questions arrive as they were asked", prove: proveQuestions},
		{name: "questions one after the other", prove: func(b *box) string {
			return proveAnswers(b, politely, `[["form"],["sampling"],["form"],["roots"]]`,
				"[["+formAnswer+"],["+samplingAnswer+"],["+formAnswer+"],["+rootsAnswer+"]]", "form", "sampling",
				"form", "roots")
		}},
		{name: "two questions at once", prove: func(b *box) string {
			return proveAnswers(b, politely, `[["form","roots"],["url","tools"]]`,
				"[["+formAnswer+","+rootsAnswer+"],["+urlAnswer+","+toolsAnswer+"]]", "form", "roots", "tools", "url")
		}},
		{name: "a prompt asks", prove: func(b *box) string {
			m := b.asker().call(mcp.MethodPromptsGet,
				`{"name":"up__ask","arguments":{"rounds":"[[\"form\"],[\"roots\"]]"}}`)
			for message := range rawjson.Elements(rawjson.Get(m.Result, "messages")) {
				if got := rawjson.GetString(message, "content", "text"); got == "[["+formAnswer+"],["+rootsAnswer+"]]" {
					return ""
				}
			}
			b.Errorf("the prompt is %s%s", m.Result, m.Error)
			return ""
		}},
		{name: "a resource asks", prove: func(b *box) string {
			m := b.asker().call(mcp.MethodResourcesRead, `{"uri":"talk://ask/form,sampling"}`)
			for content := range rawjson.Elements(rawjson.Get(m.Result, "contents")) {
				if got := rawjson.GetString(content, "text"); got == "[["+formAnswer+","+samplingAnswer+"]]" {
					return ""
				}
			}
			b.Errorf("the resource is %s%s", m.Result, m.Error)
			return ""
		}},
		{name: "a question that was not declared", prove: proveUndeclared},
		{name: "a client refuses with an error", prove: proveRefusal, refused: [...]string{"", noRefusal,
			clientRefusal, noRefusal}},
		{name: "a question is open until it is answered", prove: proveLateAnswer},
		{name: "cancelled while a question is open", prove: proveCancelledQuestion,
			idle: map[drawbridge.ProtocolEra]string{
				drawbridge.Modern: "between two requests there is nothing to cancel",
			}},
		{name: "a connection is lost, and the answer resumed", prove: proveResumed, door: "HTTP",
			idle: map[drawbridge.ProtocolEra]string{
				drawbridge.Modern: "the end of a connection cancels its request",
			}},
		{name: "cancelled after a question", prove: proveCancelledAfter},
		{name: "a server takes its question back", prove: proveRetracted, refused: [...]string{
			"", "-32601 this generation has no words to take a question back",
			"-32601 this generation has no words to take a question back", "",
		}},
	}
}

// proveAnswers has the server ask rounds of a client, and looks what it was asked and what the server heard.
func proveAnswers(b *box, script func(string, json.RawMessage) (string, string), rounds, want string,
	kinds ...string) string {
	b.Helper()
	c := b.asker()
	c.answer = script
	m := c.tool("ask", `{"rounds":`+rounds+`}`)
	if got := string(rawjson.Get(m.Result, "structuredContent", "answers")); got != want {
		b.Errorf("the server heard %s%s, want %s", m.Result, m.Error, want)
	}
	got := c.kinds()
	slices.Sort(got)
	slices.Sort(kinds)
	if diff := cmp.Diff(kinds, got); diff != "" {
		b.Errorf("questions (-want +got):\n%s", diff)
	}
	return ""
}

// proveQuestions looks at the questions of each kind as the client is asked them.
func proveQuestions(b *box) string {
	c := b.asker()
	c.tool("ask", `{"rounds":[["form"],["url"],["sampling"],["tools"],["roots"]]}`)
	want := []string{
		`elicitation/create {"mode":"form","message":"Who are you?","requestedSchema":{"type":"object","properties":{"name":{"type":"string","title":"<Name>"},"n":{"type":"integer"}},"required":["name"]},"_meta":{"drawbridge/server":"up"}}`,
		`elicitation/create {"mode":"url","message":"Sign in","url":"https://example.com/in?a=1&b=2","elicitationId":"e-1","_meta":{"drawbridge/server":"up","drawbridge/origin":"https://example.com"}}`,
		`sampling/createMessage {"messages":[{"role":"user","content":{"type":"text","text":"Think."}}],"maxTokens":10,"metadata":{"n":9007199254740993}}`,
		`sampling/createMessage {"messages":[{"role":"user","content":{"type":"text","text":"Use a tool."}}],"maxTokens":20,"tools":[{"name":"t","inputSchema":{"type":"object"}}],"toolChoice":{"mode":"required"}}`,
		`roots/list `,
	}
	if b.cell.server == drawbridge.Modern {
		want[1] = strings.Replace(want[1], `,"elicitationId":"e-1"`, "", 1)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, m := range c.asked {
		// A stateless server sends no elicitationId; for a stateful client, who must have one, there is one all the
		// same.
		if id := rawjson.GetString(m.Params, "elicitationId"); id != "" && b.cell == cells[2] {
			m.Params = rawjson.Apply(m.Params, rawjson.Drop("elicitationId"))
		}
		got := strings.TrimSuffix(m.Method+" "+string(m.Params), "{}")
		if i >= len(want) || got != want[i] {
			b.Errorf("question %d is\n%s", i, got)
		}
	}
	if len(c.asked) != len(want) {
		b.Errorf("%d questions", len(c.asked))
	}
	return ""
}

// proveUndeclared has the server ask what the client did not declare: the client is not asked, and the call goes on.
func proveUndeclared(b *box) string {
	for kind, caps := range map[string]string{"sampling": `{"elicitation":{}}`, "form": `{"roots":{}}`,
		"roots": `{"sampling":{}}`, "url": `{"elicitation":{"form":{}}}`} {
		c := b.client(b.T, b.cell.client, b.path.door, caps)
		m := c.tool("ask", `{"rounds":[["`+kind+`"]]}`)
		answer := rawjson.Get(m.Result, "structuredContent", "answers")
		want := `{"undeclared":`
		if b.cell.server == drawbridge.Legacy {
			want = `{"error":{"code":-32601,`
		}
		if !strings.HasPrefix(string(answer), "[["+want) {
			b.Errorf("%s: the server heard %s%s", kind, m.Result, m.Error)
		}
		if got := c.kinds(); len(got) > 0 {
			b.Errorf("the client was asked %v", got)
		}
	}
	return ""
}

// How a client that refuses a question with an error ends its call, where the server has no words for that, and what
// becomes of one that has no words for it itself: the question stays open.
const (
	clientRefusal = "-1 the user has left"
	noRefusal     = "asked again, since there is no answer but a result"
)

func proveRefusal(b *box) string {
	const refusal = `{"code":-1,"message":"the user has left","data":{"n":9007199254740993}}`
	c := b.asker()
	if b.cell.client == drawbridge.Modern {
		c.answer = saying("")
		params := toolParams("ask", `{"rounds":[["form"]]}`)
		m := c.do(mcp.MethodToolsCall, params)
		again := c.do(mcp.MethodToolsCall, c.retry(params, m.Result))
		if len(questionsIn(m.Result)) == 1 && len(questionsIn(again.Result)) == 1 {
			return noRefusal
		}
		return fmt.Sprintf("%s%s", again.Result, again.Error)
	}
	c.answer = func(string, json.RawMessage) (string, string) { return "", refusal }
	m := c.tool("ask", `{"rounds":[["form"]]}`)
	if b.cell.server == drawbridge.Modern {
		if string(m.Error) != refusal {
			b.Errorf("the call ends with %s%s", m.Result, m.Error)
		}
		return refusalOf(m)
	}
	if got := string(rawjson.Get(m.Result, "structuredContent", "answers")); got != `[[{"error":`+refusal+`}]]` {
		b.Errorf("the server heard %s%s", m.Result, m.Error)
	}
	return ""
}

// proveCancelledQuestion has a client cancel its call while it is asked something. The question is taken back, and the
// server's call is over. Over HTTP the cancellation and the answer to the question, which is an error, overtake each
// other.
func proveCancelledQuestion(b *box) string {
	c, before := b.asker(), len(b.records())
	c.answer = saying("")
	p := c.start(mcp.MethodToolsCall, toolParams("ask", `{"rounds":[["form"]]}`))
	c.awaitAsked(1)
	p.giveUp()
	c.await(mcp.NoteCancelled, 1)
	switch {
	case b.cell.server == drawbridge.Modern: // its call has ended with the question
	case b.path.upstream == "stdio":
		b.awaitEvent(b.T, before, "cancelled", "ask")
	default:
		b.awaitRecord(b.T, before, "the cancellation",
			func(r mcptest.TalkerEvent) bool { return r.Heard(mcp.NoteCancelled) })
	}
	return ""
}

// proveLateAnswer has a client that thinks: a stateful one answers late, a stateless one comes back without an answer
// first, and is asked again.
func proveLateAnswer(b *box) string {
	c, params := b.asker(), toolParams("ask", `{"rounds":[["form"]]}`)
	if b.cell.client == drawbridge.Modern {
		m := c.do(mcp.MethodToolsCall, params)
		c.answer = saying("")
		m = c.do(mcp.MethodToolsCall, c.retry(params, m.Result))
		c.answer = politely
		if m = c.do(mcp.MethodToolsCall, c.retry(params, m.Result)); !answered(m) {
			b.Errorf("in the end it answers %s%s", m.Result, m.Error)
		}
		return ""
	}
	late := make(chan struct{})
	c.answer = func(string, json.RawMessage) (string, string) {
		<-late
		return formAnswer, ""
	}
	p := c.start(mcp.MethodToolsCall, params)
	c.awaitAsked(1)
	other := b.plain().tool("echo", `{"text":"others go on"}`)
	close(late)
	if m := p.wait(); !answered(m) || textOf(other) != "others go on" {
		b.Errorf("in the end it answers %s%s", m.Result, m.Error)
	}
	return ""
}

// proveResumed has the client's connection break while it thinks. It goes on where it was.
func proveResumed(b *box) string {
	c := b.asker()
	thinking := make(chan struct{})
	c.answer = func(string, json.RawMessage) (string, string) {
		<-thinking
		return formAnswer, ""
	}
	p := c.start(mcp.MethodToolsCall, toolParams("ask", `{"rounds":[["form"]]}`))
	c.awaitAsked(1)
	p.cancel()
	<-p.done
	c.work.Go(func() { close(thinking) })
	m, err := c.line.(*httpLine).resume(c.ctx, p.id, c.hear)
	if err != nil || !answered(m) {
		b.Errorf("the resumed answer is %s%s, %v", m.Result, m.Error, err)
	}
	return ""
}

// proveCancelledAfter has a client answer a question, and then cancel the call, which is going on.
func proveCancelledAfter(b *box) string {
	c, before := b.asker(), len(b.records())
	never := string(rawjson.Quote(filepath.Join(b.TempDir(), "never")))
	params := toolParams("ask", `{"rounds":[["form"]],"when":`+never+`}`)
	if b.cell.client == drawbridge.Modern {
		params = c.retry(params, c.do(mcp.MethodToolsCall, params).Result)
	}
	p := c.start(mcp.MethodToolsCall, params)
	b.awaitEvent(b.T, before, "has its answers", "ask")
	p.giveUp()
	b.awaitEvent(b.T, before, "cancelled", "ask")
	return ""
}

// proveRetracted has a server take a question back while the client thinks about it: the call goes on without an
// answer.
func proveRetracted(b *box) string {
	c := b.asker()
	signal := filepath.Join(b.TempDir(), "now")
	arguments := `{"when":` + string(rawjson.Quote(signal)) + `}`
	thinking := make(chan struct{})
	think := sync.OnceFunc(func() { close(thinking) })
	defer think()
	c.answer = func(string, json.RawMessage) (string, string) {
		touchFile(b, signal)
		if b.cell.client == drawbridge.Modern {
			b.awaitEvent(b.T, 0, "answered", "retract")
			return formAnswer, ""
		}
		<-thinking
		return "", ""
	}
	m := c.tool("retract", arguments)
	if m.Error != nil {
		return refusalOf(m)
	}
	if textOf(m) != "retracted" {
		b.Errorf("it answers %s", m.Result)
	}
	if b.cell.client == drawbridge.Legacy {
		c.await(mcp.NoteCancelled, 1)
	}
	return ""
}
