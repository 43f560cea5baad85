package mcptest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// modernTaskServer is a server of the stateless generation with the tasks extension (SEP-2663). It has the tools that
// the MCP conformance suite calls. The IDs of its tasks can be guessed, so they must not be used as secrets.
//
//	greet {name}              answers at once
//	slow_compute {seconds}    starts a task that takes that long; without the extension, or for 0, answers at once
//	failing_job {}            starts a task whose result is a tool error; can only be called as a task
//	protocol_error_job {}     starts a task that fails
//	confirm_delete {filename} starts a task that asks one question
//	multi_input {}            starts a task that asks two questions at once
//	test_tool_with_task {}    first asks for a name, then starts a task
type modernTaskServer struct {
	*modernServer

	mu    sync.Mutex
	tasks map[string]*serverTask
}

// A serverTask is a task of a modernTaskServer. asks are its open questions by key. outcome is the member "result" or
// "error" of a finished task.
type serverTask struct {
	id, status, outcome string
	asks                map[string]string
	began               time.Time
	finish              func(*serverTask)
	timer               *time.Timer
}

// jobTime is how long a task without questions takes.
const jobTime = 50 * time.Millisecond

func newTaskServer() *modernTaskServer {
	s := &modernTaskServer{modernServer: newModern(), tasks: map[string]*serverTask{}}
	var tools []string
	for _, name := range []string{
		"greet", "slow_compute", "failing_job", "protocol_error_job", "confirm_delete", "multi_input",
		"test_tool_with_task",
	} {
		tools = append(tools,
			fmt.Sprintf(`{"name":%q,"description":"Plays the %s of the suite.","inputSchema":{"type":"object"}}`, name,
				name))
	}
	s.methods = methodTable{
		mcp.MethodDiscover: alwaysComplete(
			`"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"` +
				mcp.ExtensionTasks + `":{}}},"ttlMs":60000,"cacheScope":"public"`),
		mcp.MethodToolsList: alwaysComplete(`"tools":[` + strings.Join(tools, ",") +
			`],"ttlMs":60000,"cacheScope":"public"`),
		mcp.MethodToolsCall: s.call,
		mcp.MethodListen:    s.listen,
		mcp.NoteCancelled:   s.cancel,
		mcp.MethodTasksGet: s.withTask(func(c *messageStream, m mcp.Message, t *serverTask) {
			c.result(m,
				completeResult(t.members()))
		}),
		mcp.MethodTasksUpdate: s.withTask(s.update),
		mcp.MethodTasksCancel: s.withTask(s.cancelTask),
	}
	return s
}

// handle handles a message under the lock, so that no task changes meanwhile.
func (s *modernTaskServer) handle(c *messageStream, m mcp.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.modernServer.handle(c, m)
}

// declaresTasks reports whether the client declares the tasks extension in a request.
func declaresTasks(m mcp.Message) bool {
	return rawjson.Get(m.Params, "_meta", mcp.MetaClientCapabilities, "extensions", mcp.ExtensionTasks) != nil
}

func refuseUndeclared(c *messageStream, m mcp.Message) {
	data := `{"requiredCapabilities":{"extensions":{"` + mcp.ExtensionTasks + `":{}}}}`
	c.say(mcp.Message{ID: m.ID, Error: mcp.NewErrorObject(mcp.CodeMissingCapability, "the tasks extension is needed",
		json.RawMessage(data))})
}

// withTask returns a handler for requests that name a task. The handler calls answer with that task. It refuses unknown
// tasks, and clients that do not declare the tasks extension.
func (s *modernTaskServer) withTask(answer func(*messageStream, mcp.Message, *serverTask)) func(
	*messageStream, mcp.Message) {
	return func(c *messageStream, m mcp.Message) {
		t := s.tasks[rawjson.GetString(m.Params, "taskId")]
		switch {
		case !declaresTasks(m):
			refuseUndeclared(c, m)
		case t == nil:
			c.fail(m, mcp.CodeInvalidParams, "no such task")
		default:
			answer(c, m, t)
		}
	}
}

func (s *modernTaskServer) call(c *messageStream, m mcp.Message) {
	declared := declaresTasks(m)
	argument := func(name string) string { return rawjson.GetString(m.Params, "arguments", name) }
	say := func(text string) { c.result(m, completeResult(textMember(text))) }
	name := rawjson.GetString(m.Params, "name")
	switch name {
	case "greet":
		say("Hello, " + argument("name") + "!")
		return
	case "slow_compute":
		var seconds float64
		_ = json.Unmarshal(rawjson.Get(m.Params, "arguments", "seconds"), &seconds)
		if !declared || seconds == 0 {
			say("computed")
			return
		}
		s.begin(c, m, time.Duration(seconds*float64(time.Second)), nil, completedWith("computed "+argument("label")))
		return
	}
	if !declared {
		refuseUndeclared(c, m)
		return
	}
	switch name {
	case "failing_job":
		s.begin(c, m, jobTime, nil, endedWith("completed", `"result":{`+textMember("it did not work")+
			`,"isError":true}`))
	case "protocol_error_job":
		s.begin(c, m, jobTime, nil, endedWith("failed", `"error":{"code":-32603,"message":"it broke"}`))
	case "confirm_delete":
		s.begin(c, m, 0, map[string]string{"confirm": elicitation("Delete "+argument("filename")+"?", "confirm",
			"boolean")}, completedWith("deleted"))
	case "multi_input":
		s.begin(c, m, 0, map[string]string{
			"first":  elicitation("The first name?", "name", "string"),
			"second": elicitation("The second name?", "name", "string"),
		}, completedWith("two names"))
	case "test_tool_with_task":
		s.askThenBegin(c, m)
	default:
		c.fail(m, mcp.CodeInvalidParams, "unknown tool: "+name)
	}
}

// askThenBegin asks for a name with an input_required result, and starts a task when the client calls again with the
// name.
func (s *modernTaskServer) askThenBegin(c *messageStream, m mcp.Message) {
	answer := rawjson.Get(m.Params, "inputResponses", "user_name")
	switch {
	case answer == nil:
		c.result(m, `{"resultType":"input_required","requestState":"asked","inputRequests":{"user_name":`+
			elicitation("Who are you?", "name", "string")+`},`+modernInfo+`}`)
	case rawjson.GetString(m.Params, "requestState") != "asked":
		c.fail(m, mcp.CodeInvalidParams, "the requestState is not mine")
	default:
		s.begin(c, m, jobTime, nil, completedWith("done for "+rawjson.GetString(answer, "content", "name")))
	}
}

// begin starts a task for a call and sends the response. A task with questions finishes when all are answered. A task
// without questions finishes after the given time.
func (s *modernTaskServer) begin(c *messageStream, m mcp.Message, after time.Duration, asks map[string]string,
	finish func(*serverTask)) {
	t := &serverTask{id: fmt.Sprintf("task-%d", len(s.tasks)+1), status: "working", asks: asks,
		began: time.Now(), finish: finish}
	s.tasks[t.id] = t
	if len(asks) > 0 {
		t.status = "input_required"
	} else {
		t.timer = time.AfterFunc(after, func() { s.end(t, finish) })
	}
	c.result(m, `{"resultType":"task",`+t.base()+`,`+modernInfo+`}`)
}

// end finishes a task, unless the task has already ended.
func (s *modernTaskServer) end(t *serverTask, finish func(*serverTask)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !t.over() {
		finish(t)
		s.changed(t)
	}
}

func (t *serverTask) over() bool { return t.status != "working" && t.status != "input_required" }

func completedWith(text string) func(*serverTask) {
	return endedWith("completed", `"result":{`+textMember(text)+`}`)
}

func endedWith(status, outcome string) func(*serverTask) {
	return func(t *serverTask) { t.status, t.outcome, t.asks = status, outcome, nil }
}

// update stores answers to a task's questions. The task finishes when it has all of them.
func (s *modernTaskServer) update(c *messageStream, m mcp.Message, t *serverTask) {
	open := len(t.asks)
	for answer := range rawjson.Members(rawjson.Get(m.Params, "inputResponses")) {
		key, _ := rawjson.DecodeString(answer.Name)
		delete(t.asks, key)
	}
	c.result(m, `{"resultType":"complete",`+modernInfo+`}`)
	if len(t.asks) == open {
		return
	}
	if len(t.asks) == 0 && !t.over() {
		t.finish(t)
	}
	s.changed(t)
}

func (s *modernTaskServer) cancelTask(c *messageStream, m mcp.Message, t *serverTask) {
	c.result(m, `{"resultType":"complete",`+modernInfo+`}`)
	if !t.over() {
		endedWith("cancelled", "")(t)
		s.changed(t)
	}
}

// changed sends the new state of a task to the subscriptions/listen requests that include the task.
func (s *modernTaskServer) changed(t *serverTask) {
	for _, l := range s.listeners {
		for id := range rawjson.Elements(rawjson.Get(l.filter, "taskIds")) {
			if text, _ := rawjson.DecodeString(id); text == t.id {
				l.stream.notify(mcp.NoteTask, `{`+t.members()+`,`+subscriptionMetaMember(l.id)+`}`)
			}
		}
	}
}

// base returns the members that a task has in every message; members returns these members, the open questions and the
// outcome.
func (t *serverTask) base() string {
	return fmt.Sprintf(`"taskId":%q,"status":%q,"createdAt":%q,"lastUpdatedAt":%q,"ttlMs":300000,"pollIntervalMs":20`,
		t.id, t.status, t.began.UTC().Format(time.RFC3339), time.Now().UTC().Format(time.RFC3339))
}

func (t *serverTask) members() string {
	out := t.base()
	if len(t.asks) > 0 {
		asks, _ := json.Marshal(rawValues(t.asks)) // the texts are valid JSON, so this cannot fail
		out += `,"inputRequests":` + string(asks)
	}
	if t.outcome != "" {
		out += "," + t.outcome
	}
	return out
}

func rawValues(texts map[string]string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for key, text := range texts {
		out[key] = json.RawMessage(text)
	}
	return out
}

func textMember(text string) string {
	return `"content":[{"type":"text","text":` + string(rawjson.Quote(text)) + `}]`
}

// elicitation returns an elicitation request for one property.
func elicitation(message, property, kind string) string {
	return fmt.Sprintf(`{"method":"elicitation/create","params":{"mode":"form","message":%s,"requestedSchema":`+
		`{"type":"object","properties":{%q:{"type":%q}},"required":[%[2]q]}}}`, rawjson.Quote(message), property, kind)
}

// HTTPTasks returns the named server "tasks" over HTTP. It refuses requests whose headers contradict the body.
func HTTPTasks() http.Handler {
	server := newTaskServer()
	return postOnly(func(w http.ResponseWriter, r *http.Request, _ []byte, m mcp.Message) {
		if why := mismatchedHeader(r.Header, m); why != "" && m.IsRequest() {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write(mcp.Message{ID: m.ID, Error: mcp.NewErrorObject(mcp.CodeHeaderMismatch, why,
				nil)}.Append(nil))
			return
		}
		if m.Method != mcp.MethodListen {
			respond(w, server, m)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		stream := &messageStream{out: func(message []byte) {
			_, _ = w.Write(mcp.AppendSSEEvent(nil, mcp.SSEEvent{Data: message}))
			_ = http.NewResponseController(w).Flush()
		}}
		server.handle(stream, m)
		<-r.Context().Done()
		server.mu.Lock()
		defer server.mu.Unlock()
		server.forget(stream)
	})
}

// mismatchedHeader returns a description of a header that contradicts the body, or "".
func mismatchedHeader(h http.Header, m mcp.Message) string {
	if h.Get(mcp.HeaderMethod) != m.Method {
		return mcp.HeaderMethod + " is not the method"
	}
	name, ok := mcp.TargetName(m.Method, m.Params)
	if !ok {
		return ""
	}
	if got, err := mcp.DecodeHeaderValue(h.Get(mcp.HeaderName)); err != nil || got != name {
		return mcp.HeaderName + " is not the name"
	}
	return ""
}
