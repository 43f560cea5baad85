//go:build !nomcp

package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// patience bounds everything that a test waits for.
const patience = 20 * time.Second

// A client is an MCP client made by hand, of one generation, at one door. It hands over what came as bytes, and answers
// questions by a script: a stateful one on the stream where it is asked, a stateless one with a retry of its request.
type client struct {
	t    testing.TB
	ctx  context.Context
	era  drawbridge.ProtocolEra
	line line
	// caps is what it declares, level the log level that each stateless request asks for; both may be empty.
	caps, level string
	// answer answers a question, with a result or, in the stateful generation only, an error object. With neither the
	// question stays open. It may be called from several goroutines.
	answer func(method string, params json.RawMessage) (result, refusal string)
	// marks are the arguments that travel in headers too, by tool.
	marks map[string][]mcp.HeaderParam

	// told is the answer to initialize.
	told json.RawMessage

	lastID atomic.Int64
	work   sync.WaitGroup

	mu    sync.Mutex
	heard []mcp.Message // notifications
	asked []mcp.Message // questions
	bell  chan struct{} // closed and made again with each of them
}

// A line is how a client reaches a door.
type line interface {
	// exchange sends a request and returns its response. What comes on the way goes to hear.
	exchange(ctx context.Context, m mcp.Message, marks []mcp.HeaderParam, hear func(mcp.Message)) (mcp.Message, error)
	// send sends what has no response: a notification, or an answer.
	send(ctx context.Context, m mcp.Message) error
	// batch sends bytes as they are, and returns so many responses to them.
	batch(ctx context.Context, body []byte, responses int) ([]mcp.Message, error)
	// cancels reports that the end of a request's context cancels it.
	cancels() bool
	// hangUp ends the connection at once.
	hangUp()
}

// All that a client can declare.
const allCaps = `{"roots":{"listChanged":true},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}}}`

// What a client says where its script does not: to each kind of question that the talker asks.
const (
	formAnswer     = `{"action":"accept","content":{"name":"<Ada>","n":9007199254740993}}`
	urlAnswer      = `{"action":"accept","content":{}}`
	samplingAnswer = `{"role":"assistant","content":{"type":"text","text":"thought"},"model":"m-1","stopReason":"endTurn","future":[1.0]}`
	toolsAnswer    = `{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"t","input":{"n":18446744073709551617}}],"model":"m-1","stopReason":"toolUse"}`
	rootsAnswer    = `{"roots":[{"uri":"file:///work","name":"\u00e9"}]}`
)

// kindOf returns the kind of question, as the talker names them.
func kindOf(method string, params json.RawMessage) string {
	switch {
	case method == mcp.MethodRootsList:
		return "roots"
	case method == mcp.MethodElicitation && rawjson.GetString(params, "mode") == "url":
		return "url"
	case method == mcp.MethodElicitation:
		return "form"
	case rawjson.Get(params, "tools") != nil:
		return "tools"
	}
	return "sampling"
}

// politely answers every kind of question.
func politely(method string, params json.RawMessage) (result, refusal string) {
	return map[string]string{
		"form": formAnswer, "url": urlAnswer, "sampling": samplingAnswer, "tools": toolsAnswer, "roots": rootsAnswer,
	}[kindOf(method, params)], ""
}

// saying answers every question with the same result.
func saying(result string) func(string, json.RawMessage) (string, string) {
	return func(string, json.RawMessage) (string, string) { return result, "" }
}

// newClient makes a client that declares caps. A stateful one greets the door, in that revision.
func newClient(t testing.TB, era drawbridge.ProtocolEra, protocol, caps string,
	open func(hear func(mcp.Message)) line) *client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	c := &client{t: t, ctx: ctx, era: era, caps: caps, answer: politely, bell: make(chan struct{})}
	if caps == "" {
		c.caps = "{}"
	}
	c.line = open(c.hear)
	t.Cleanup(func() {
		cancel()
		c.line.hangUp()
		c.work.Wait()
	})
	if era == drawbridge.Legacy {
		m := c.do(mcp.MethodInitialize, `{"protocolVersion":"`+protocol+`","capabilities":`+c.caps+
			`,"clientInfo":{"name":"raw","version":"0"}}`)
		if got := rawjson.GetString(m.Result, "protocolVersion"); got != protocol {
			t.Fatalf("initialize answers %s%s", m.Result, m.Error)
		}
		c.told = m.Result
		c.note(mcp.NoteInitialized, "")
	}
	return c
}

// do sends a request and returns its response, whatever that is.
func (c *client) do(method, params string) mcp.Message {
	c.t.Helper()
	p := c.start(method, params)
	return p.wait()
}

// call sends a request, and again with the answers for as long as it is asked for input.
func (c *client) call(method, params string) mcp.Message {
	c.t.Helper()
	for range 20 {
		m := c.do(method, params)
		if c.era != drawbridge.Modern || rawjson.GetString(m.Result, "resultType") != "input_required" {
			return m
		}
		params = c.retry(params, m.Result)
	}
	c.t.Fatalf("%s goes on asking", method)
	return mcp.Message{}
}

// tool calls a tool of the server up.
func (c *client) tool(name, arguments string) mcp.Message {
	c.t.Helper()
	return c.call(mcp.MethodToolsCall, toolParams(name, arguments))
}

func toolParams(name, arguments string) string {
	return `{"name":"up__` + name + `","arguments":` + arguments + `}`
}

// retry returns the params of the last request together with the answers to the questions in its result.
func (c *client) retry(params string, result json.RawMessage) string {
	out := rawjson.Apply(json.RawMessage(params), rawjson.Drop("inputResponses"), rawjson.Drop("requestState"))
	if state := rawjson.Get(result, "requestState"); state != nil {
		out = rawjson.Apply(out, rawjson.Put(state, "requestState"))
	}
	for key, question := range questionsIn(result) {
		method, params := rawjson.GetString(question, "method"), rawjson.Get(question, "params")
		c.ask(mcp.Message{ID: rawjson.Quote(key), Method: method, Params: params})
		if answer, _ := c.answer(method, params); answer != "" {
			out = rawjson.Apply(out, rawjson.Put(json.RawMessage(answer), "inputResponses", key))
		}
	}
	return string(out)
}

// questionsIn returns the questions of an input_required result by their keys.
func questionsIn(result json.RawMessage) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	for m := range rawjson.Members(rawjson.Get(result, "inputRequests")) {
		key, _ := rawjson.DecodeString(m.Name)
		all[key] = m.Value
	}
	return all
}

// A pending request was sent and is not answered yet.
type pending struct {
	c      *client
	id     json.RawMessage
	cancel context.CancelFunc
	done   chan struct{}
	m      mcp.Message
	err    error
}

// start sends a request.
func (c *client) start(method, params string) *pending {
	m := mcp.Message{ID: json.RawMessage(strconv.FormatInt(c.lastID.Add(1), 10)), Method: method,
		Params: c.dressed(params)}
	p := &pending{c: c, id: m.ID, done: make(chan struct{})}
	var ctx context.Context
	ctx, p.cancel = context.WithCancel(c.ctx)
	marks := c.marks[rawjson.GetString(m.Params, "name")]
	c.work.Go(func() {
		defer close(p.done)
		defer p.cancel()
		p.m, p.err = c.line.exchange(ctx, m, marks, c.hear)
	})
	return p
}

// dressed returns params with the members of _meta in which a stateless client declares itself.
func (c *client) dressed(params string) json.RawMessage {
	raw := json.RawMessage(params)
	if c.era != drawbridge.Modern {
		return raw
	}
	raw = rawjson.Apply(raw, rawjson.Put(rawjson.Quote(mcp.Version20260728), "_meta", mcp.MetaProtocolVersion),
		rawjson.Put(json.RawMessage(c.caps), "_meta", mcp.MetaClientCapabilities))
	if c.level != "" {
		raw = rawjson.Apply(raw, rawjson.Put(rawjson.Quote(c.level), "_meta", mcp.MetaLogLevel))
	}
	return raw
}

// wait returns the response.
func (p *pending) wait() mcp.Message {
	p.c.t.Helper()
	<-p.done
	if p.err != nil {
		p.c.t.Fatalf("no response: %v", p.err)
	}
	return p.m
}

// giveUp cancels the request in the way that its generation and door have.
func (p *pending) giveUp() {
	if p.c.line.cancels() {
		p.cancel()
		<-p.done
		return
	}
	p.c.note(mcp.NoteCancelled, `{"requestId":`+string(p.id)+`,"reason":"enough"}`)
}

// note sends a notification.
func (c *client) note(method, params string) {
	c.t.Helper()
	m := mcp.Message{Method: method}
	if params != "" {
		m.Params = json.RawMessage(params)
	}
	if err := c.line.send(c.ctx, m); err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
}

// hear takes a message that is not a response: it is kept, and answered if it is a question.
func (c *client) hear(m mcp.Message) {
	if !m.IsRequest() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.heard = append(c.heard, m)
		c.ring()
		return
	}
	c.ask(m)
	c.work.Go(func() {
		result, refusal := c.answer(m.Method, m.Params)
		reply := mcp.Message{ID: m.ID}
		switch {
		case refusal != "":
			reply.Error = json.RawMessage(refusal)
		case result != "":
			reply.Result = json.RawMessage(result)
		default:
			return
		}
		if err := c.line.send(c.ctx, reply); err != nil && c.ctx.Err() == nil {
			c.t.Logf("an answer was not taken: %v", err)
		}
	})
}

// ask keeps a question.
func (c *client) ask(m mcp.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, m)
	c.ring()
}

// ring wakes who waits for something said. The lock is held.
func (c *client) ring() {
	close(c.bell)
	c.bell = make(chan struct{})
}

// notes returns the notifications of a method that were heard so far.
func (c *client) notes(method string) []mcp.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.heard), func(m mcp.Message) bool { return m.Method != method })
}

// kinds returns the kinds of the questions that were asked so far.
func (c *client) kinds() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var kinds []string
	for _, m := range c.asked {
		kinds = append(kinds, kindOf(m.Method, m.Params))
	}
	return kinds
}

// await waits until there are so many notifications of a method.
func (c *client) await(method string, n int) []mcp.Message {
	c.t.Helper()
	c.until(func() bool { return len(c.notes(method)) >= n }, fmt.Sprintf("%d %s", n, method))
	return c.notes(method)
}

// awaitAsked waits until there were so many questions.
func (c *client) awaitAsked(n int) {
	c.t.Helper()
	c.until(func() bool { return len(c.kinds()) >= n }, fmt.Sprintf("%d questions", n))
}

func (c *client) until(there func() bool, what string) {
	c.t.Helper()
	for {
		c.mu.Lock()
		bell := c.bell
		c.mu.Unlock()
		if there() {
			return
		}
		select {
		case <-bell:
		case <-c.ctx.Done():
			c.t.Fatalf("never heard: %s", what)
		}
	}
}

// listen asks for what belongs to no call, in the stateless generation by a request, and waits for its acknowledgement.
func (c *client) listen(filter string) *pending {
	c.t.Helper()
	before := len(c.notes(mcp.NoteListenAck))
	p := c.start(mcp.MethodListen, `{"notifications":`+filter+`}`)
	c.await(mcp.NoteListenAck, before+1)
	return p
}

// textOf returns the text of the first block of a result.
func textOf(m mcp.Message) string {
	for block := range rawjson.Elements(rawjson.Get(m.Result, "content")) {
		return rawjson.GetString(block, "text")
	}
	return ""
}

// refusalOf returns the error of a response: its code and its message; empty for a result.
func refusalOf(m mcp.Message) string {
	if m.Error == nil {
		return ""
	}
	return fmt.Sprintf("%d %s", mcp.ErrorCode(m.Error), rawjson.GetString(m.Error, "message"))
}
