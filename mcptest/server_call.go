package mcptest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A ServerCall is one request for a tool, a prompt or a resource, passed to an AnswerFunc.
type ServerCall struct {
	// Method is tools/call, prompts/get or resources/read. Name is the name of the tool or prompt, or the resource's
	// URI.
	Method, Name string
	// Arguments is the object of arguments, "{}" if there were none. Params are the whole params of the request.
	Arguments, Params json.RawMessage
	// Era is the protocol generation of the call.
	Era drawbridge.ProtocolEra

	s    *serverSession
	send func(mcp.Message)
	caps json.RawMessage
	// answers are the answers that a stateless client has sent so far. next is the index of the next question.
	answers []json.RawMessage
	next    int
}

// Text returns a result with a text, in the form that the call requires.
func (c *ServerCall) Text(text string) json.RawMessage {
	quoted := string(rawjson.Quote(text))
	members := `"content":[{"type":"text","text":` + quoted + `}]`
	switch c.Method {
	case mcp.MethodPromptsGet:
		members = `"messages":[{"role":"user","content":{"type":"text","text":` + quoted + `}}]`
	case mcp.MethodResourcesRead:
		members = `"contents":[{"uri":` + string(rawjson.Quote(c.Name)) + `,"text":` + quoted + `}]`
	}
	return c.s.complete(c.Era, c.Method, members)
}

// Notify sends the client a notification that belongs to the call. params may be nil.
func (c *ServerCall) Notify(method string, params json.RawMessage) {
	c.send(mcp.Message{Method: method, Params: params})
}

// Progress notifies the client of the call's progress, if the client sent a progress token.
func (c *ServerCall) Progress(done, total float64) {
	token := rawjson.Get(c.Params, "_meta", mcp.MetaProgressToken)
	if token == nil {
		return
	}
	c.Notify(mcp.NoteProgress, jsonObject("progressToken", token, "progress", done, "total", total))
}

// AskClient sends the client a request during the call (elicitation/create, sampling/createMessage or roots/list) and
// returns the result. It returns an error if the client did not declare that it accepts this request, or if the
// client's response is an error.
//
// A client without a session (stateless generation) receives the request in the result of its call, and calls again
// with the answer. To send the request, AskClient returns an error, which the AnswerFunc must return. When the client
// calls again, the AnswerFunc runs again from its start, and AskClient returns the answer.
func (c *ServerCall) AskClient(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if !mcp.ClientAcceptsRequest(c.caps, method, params) {
		return nil, fmt.Errorf("%s: the client did not declare that it can be asked", method)
	}
	if c.Era == drawbridge.Legacy {
		return c.s.ask(ctx, c.send, method, params)
	}
	if c.next < len(c.answers) {
		c.next++
		return c.answers[c.next-1], nil
	}
	return nil, pendingQuestion{method, params}
}

// A pendingQuestion is the error of an AnswerFunc that needs an answer of a stateless client.
type pendingQuestion struct {
	method string
	params json.RawMessage
}

func (q pendingQuestion) Error() string { return q.method + ": the client is asked first" }

// inputRequired returns the result that sends a question to a stateless client. Its requestState contains the earlier
// answers.
func (c *ServerCall) inputRequired(q pendingQuestion) json.RawMessage {
	asked := jsonObject("method", q.method)
	if q.params != nil {
		asked = rawjson.Apply(asked, rawjson.Put(q.params, "params"))
	}
	state, err := json.Marshal(c.answers)
	if err != nil {
		state = nil
	}
	result := jsonObject("resultType", "input_required", "requestState", base64.StdEncoding.EncodeToString(state))
	result = rawjson.Apply(result, rawjson.Put(asked, "inputRequests", strconv.Itoa(len(c.answers))))
	return rawjson.Apply(result, rawjson.Put(c.s.info(), "_meta", mcp.MetaServerInfo))
}

// readPriorAnswers sets c.answers to the answers in the request of a stateless client: the earlier answers are in
// requestState, the new answer is in inputResponses.
func (c *ServerCall) readPriorAnswers() error {
	text := rawjson.GetString(c.Params, "requestState")
	if text == "" {
		return nil
	}
	state, err := base64.StdEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(state, &c.answers)
	}
	if err != nil {
		return Refuse(mcp.CodeInvalidParams, "the requestState is none of this server's")
	}
	answer := rawjson.Get(c.Params, "inputResponses", strconv.Itoa(len(c.answers)))
	if answer == nil {
		return Refuse(mcp.CodeInvalidParams, "inputResponses has no answer to "+strconv.Itoa(len(c.answers)))
	}
	c.answers = append(c.answers, answer)
	return nil
}

// respond calls answer and returns the response.
func (c *ServerCall) respond(ctx context.Context, id json.RawMessage, answer AnswerFunc) mcp.Message {
	err := c.readPriorAnswers()
	var result json.RawMessage
	if err == nil {
		result, err = answer(ctx, c)
	}
	q, asks := errors.AsType[pendingQuestion](err)
	refused, refuses := errors.AsType[refusalError](err)
	switch {
	case err == nil:
		return mcp.Message{ID: id, Result: result}
	case asks:
		return mcp.Message{ID: id, Result: c.inputRequired(q)}
	case refuses:
		return errorMessage(id, refused.code, refused.message)
	case c.Method != mcp.MethodToolsCall:
		return errorMessage(id, mcp.CodeInternal, err.Error())
	}
	return mcp.Message{ID: id, Result: rawjson.Apply(c.Text(err.Error()),
		rawjson.Put(json.RawMessage("true"), "isError"))}
}

func errorMessage(id json.RawMessage, code int, message string) mcp.Message {
	return mcp.Message{ID: id, Error: mcp.NewErrorObject(code, message, nil)}
}
