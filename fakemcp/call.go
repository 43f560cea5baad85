package fakemcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A Call is one request for a tool, a prompt or a resource, as an Answer sees it.
type Call struct {
	// Method is tools/call, prompts/get or resources/read; Name the tool, the prompt, or the resource's URI.
	Method, Name string
	// Arguments is an object, "{}" where there were none; Params is all that came.
	Arguments, Params json.RawMessage
	// Era is the generation in which the call came.
	Era drawbridge.Era

	s    *session
	say  func(wire.Message)
	caps json.RawMessage
	// answers are those that a stateless client has brought so far; next is the question whose turn it is.
	answers []json.RawMessage
	next    int
}

// Text is a result that is a text, in the form that the call needs.
func (c *Call) Text(text string) json.RawMessage {
	quoted := string(wire.Quote(text))
	members := `"content":[{"type":"text","text":` + quoted + `}]`
	switch c.Method {
	case wire.MethodPromptsGet:
		members = `"messages":[{"role":"user","content":{"type":"text","text":` + quoted + `}}]`
	case wire.MethodResourcesRead:
		members = `"contents":[{"uri":` + string(wire.Quote(c.Name)) + `,"text":` + quoted + `}]`
	}
	return c.s.complete(c.Era, c.Method, members)
}

// Notify sends the client a notification that belongs to the call. Params may be nil.
func (c *Call) Notify(method string, params json.RawMessage) {
	c.say(wire.Message{Method: method, Params: params})
}

// Progress tells the client how far the call is, where it wants to know.
func (c *Call) Progress(done, total float64) {
	token := wire.Get(c.Params, "_meta", wire.MetaProgressToken)
	if token == nil {
		return
	}
	c.Notify(wire.NoteProgress, object("progressToken", token, "progress", done, "total", total))
}

// Ask asks the client something in the midst of the call: elicitation/create, sampling/createMessage or roots/list. It gives the
// result. The error is for a client that did not declare that it can be asked this, and for an answer that is an error.
//
// A client without a session is asked by the result of its call, and calls again with the answer. Ask then gives an error, which the
// Answer must return, and the Answer is run anew, from its start, as often as it asks.
func (c *Call) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if !wire.MayAsk(c.caps, method, params) {
		return nil, fmt.Errorf("%s: the client did not declare that it can be asked", method)
	}
	if c.Era == drawbridge.Legacy {
		return c.s.ask(ctx, c.say, method, params)
	}
	if c.next < len(c.answers) {
		c.next++
		return c.answers[c.next-1], nil
	}
	return nil, question{method, params}
}

// A question is the error of an Answer that cannot go on before a stateless client has answered.
type question struct {
	method string
	params json.RawMessage
}

func (q question) Error() string { return q.method + ": the client is asked first" }

// required is the result that puts the question to a stateless client. The state brings back what was answered before.
func (c *Call) required(q question) json.RawMessage {
	asked := object("method", q.method)
	if q.params != nil {
		asked = wire.Apply(asked, wire.Put(q.params, "params"))
	}
	state, err := json.Marshal(c.answers)
	if err != nil {
		state = nil
	}
	result := object("resultType", "input_required", "requestState", base64.StdEncoding.EncodeToString(state))
	result = wire.Apply(result, wire.Put(asked, "inputRequests", strconv.Itoa(len(c.answers))))
	return wire.Apply(result, wire.Put(c.s.info(), "_meta", wire.MetaServerInfo))
}

// recall reads what a stateless client brings back.
func (c *Call) recall() error {
	text := wire.GetText(c.Params, "requestState")
	if text == "" {
		return nil
	}
	state, err := base64.StdEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(state, &c.answers)
	}
	if err != nil {
		return Refuse(wire.CodeInvalidParams, "the requestState is none of this server's")
	}
	answer := wire.Get(c.Params, "inputResponses", strconv.Itoa(len(c.answers)))
	if answer == nil {
		return Refuse(wire.CodeInvalidParams, "inputResponses has no answer to "+strconv.Itoa(len(c.answers)))
	}
	c.answers = append(c.answers, answer)
	return nil
}

// run calls the Answer and gives what the request is answered with.
func (c *Call) run(ctx context.Context, id json.RawMessage, answer Answer) wire.Message {
	err := c.recall()
	var result json.RawMessage
	if err == nil {
		result, err = answer(ctx, c)
	}
	q, asks := errors.AsType[question](err)
	refused, refuses := errors.AsType[refusal](err)
	switch {
	case err == nil:
		return wire.Message{ID: id, Result: result}
	case asks:
		return wire.Message{ID: id, Result: c.required(q)}
	case refuses:
		return fault(id, refused.code, refused.message)
	case c.Method != wire.MethodToolsCall:
		return fault(id, wire.CodeInternal, err.Error())
	}
	return wire.Message{ID: id, Result: wire.Apply(c.Text(err.Error()), wire.Put(json.RawMessage("true"), "isError"))}
}

func fault(id json.RawMessage, code int, message string) wire.Message {
	return wire.Message{ID: id, Error: wire.ErrorObject(code, message, nil)}
}
