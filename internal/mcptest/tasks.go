package mcptest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// taskServer is a server of the stateless generation with the tasks extension (SEP-2663), with the tools that the
// conformance suite calls. The ids of its tasks can be guessed, so that nobody behind it may rely on their secrecy.
//
//	greet {name}              answers at once
//	slow_compute {seconds}    a task of so many seconds; without the extension, or for none, answers at once
//	failing_job {}            a task that ends with an error of the tool; there is no other way to call it
//	protocol_error_job {}     a task that fails
//	confirm_delete {filename} a task that asks one thing
//	multi_input {}            a task that asks two things at once
//	test_tool_with_task {}    asks for a name first, and becomes a task then
type taskServer struct {
	*modern

	mu    sync.Mutex
	tasks map[string]*task
}

// A task is one of a taskServer's. asks are its open questions by key; outcome is a member, "result" or "error", once it
// is over.
type task struct {
	id, status, outcome string
	asks                map[string]string
	began               time.Time
	finish              func(*task)
	timer               *time.Timer
}

// jobTime is how long a task takes that asks nobody anything.
const jobTime = 50 * time.Millisecond

func newTaskServer() *taskServer {
	s := &taskServer{modern: newModern(), tasks: map[string]*task{}}
	var tools []string
	for _, name := range []string{
		"greet", "slow_compute", "failing_job", "protocol_error_job", "confirm_delete", "multi_input", "test_tool_with_task",
	} {
		tools = append(tools, fmt.Sprintf(`{"name":%q,"description":"Plays the %s of the suite.","inputSchema":{"type":"object"}}`, name, name))
	}
	s.methods = handMade{
		wire.MethodDiscover: alwaysComplete(`"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"` +
			wire.ExtensionTasks + `":{}}},"ttlMs":60000,"cacheScope":"public"`),
		wire.MethodToolsList:   alwaysComplete(`"tools":[` + strings.Join(tools, ",") + `],"ttlMs":60000,"cacheScope":"public"`),
		wire.MethodToolsCall:   s.call,
		wire.MethodListen:      s.listen,
		wire.NoteCancelled:     s.cancel,
		wire.MethodTasksGet:    s.withTask(func(c *conversation, m wire.Message, t *task) { c.result(m, completeResult(t.members())) }),
		wire.MethodTasksUpdate: s.withTask(s.update),
		wire.MethodTasksCancel: s.withTask(s.cancelTask),
	}
	return s
}

// answer takes one message after the other, and none while a task is changing.
func (s *taskServer) answer(c *conversation, m wire.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.modern.answer(c, m)
}

// declaresTasks says whether a request has the extension, and refuses one that has not.
func declaresTasks(m wire.Message) bool {
	return wire.Get(m.Params, "_meta", wire.MetaClientCapabilities, "extensions", wire.ExtensionTasks) != nil
}

func refuseUndeclared(c *conversation, m wire.Message) {
	data := `{"requiredCapabilities":{"extensions":{"` + wire.ExtensionTasks + `":{}}}}`
	c.say(wire.Message{ID: m.ID, Error: wire.ErrorObject(wire.CodeMissingCapability, "the tasks extension is needed", json.RawMessage(data))})
}

// withTask answers a request about a task that there is, by a client that knows of tasks.
func (s *taskServer) withTask(answer func(*conversation, wire.Message, *task)) func(*conversation, wire.Message) {
	return func(c *conversation, m wire.Message) {
		t := s.tasks[wire.GetText(m.Params, "taskId")]
		switch {
		case !declaresTasks(m):
			refuseUndeclared(c, m)
		case t == nil:
			c.fail(m, wire.CodeInvalidParams, "no such task")
		default:
			answer(c, m, t)
		}
	}
}

func (s *taskServer) call(c *conversation, m wire.Message) {
	declared := declaresTasks(m)
	argument := func(name string) string { return wire.GetText(m.Params, "arguments", name) }
	say := func(text string) { c.result(m, completeResult(textMember(text))) }
	name := wire.GetText(m.Params, "name")
	switch name {
	case "greet":
		say("Hello, " + argument("name") + "!")
		return
	case "slow_compute":
		var seconds float64
		_ = json.Unmarshal(wire.Get(m.Params, "arguments", "seconds"), &seconds)
		if !declared || seconds == 0 {
			say("computed")
			return
		}
		s.begin(c, m, time.Duration(seconds*float64(time.Second)), nil, completed("computed "+argument("label")))
		return
	}
	if !declared {
		refuseUndeclared(c, m)
		return
	}
	switch name {
	case "failing_job":
		s.begin(c, m, jobTime, nil, ended("completed", `"result":{`+textMember("it did not work")+`,"isError":true}`))
	case "protocol_error_job":
		s.begin(c, m, jobTime, nil, ended("failed", `"error":{"code":-32603,"message":"it broke"}`))
	case "confirm_delete":
		s.begin(c, m, 0, map[string]string{"confirm": question("Delete "+argument("filename")+"?", "confirm", "boolean")}, completed("deleted"))
	case "multi_input":
		s.begin(c, m, 0, map[string]string{
			"first":  question("The first name?", "name", "string"),
			"second": question("The second name?", "name", "string"),
		}, completed("two names"))
	case "test_tool_with_task":
		s.askThenBegin(c, m)
	default:
		c.fail(m, wire.CodeInvalidParams, "unknown tool: "+name)
	}
}

// askThenBegin asks for a name in the way of every call, and makes a task once it has one.
func (s *taskServer) askThenBegin(c *conversation, m wire.Message) {
	answer := wire.Get(m.Params, "inputResponses", "user_name")
	switch {
	case answer == nil:
		c.result(m, `{"resultType":"input_required","requestState":"asked","inputRequests":{"user_name":`+
			question("Who are you?", "name", "string")+`},`+modernInfo+`}`)
	case wire.GetText(m.Params, "requestState") != "asked":
		c.fail(m, wire.CodeInvalidParams, "the requestState is not mine")
	default:
		s.begin(c, m, jobTime, nil, completed("done for "+wire.GetText(answer, "content", "name")))
	}
}

// begin makes a task of a call: one that asks, or one that is over after some time.
func (s *taskServer) begin(c *conversation, m wire.Message, after time.Duration, asks map[string]string, finish func(*task)) {
	t := &task{id: fmt.Sprintf("task-%d", len(s.tasks)+1), status: "working", asks: asks, began: time.Now(), finish: finish}
	s.tasks[t.id] = t
	if len(asks) > 0 {
		t.status = "input_required"
	} else {
		t.timer = time.AfterFunc(after, func() { s.end(t, finish) })
	}
	c.result(m, `{"resultType":"task",`+t.base()+`,`+modernInfo+`}`)
}

// end ends a task, where it is not over.
func (s *taskServer) end(t *task, finish func(*task)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !t.over() {
		finish(t)
		s.changed(t)
	}
}

func (t *task) over() bool { return t.status != "working" && t.status != "input_required" }

func completed(text string) func(*task) { return ended("completed", `"result":{`+textMember(text)+`}`) }

func ended(status, outcome string) func(*task) {
	return func(t *task) { t.status, t.outcome, t.asks = status, outcome, nil }
}

// update takes answers: the task goes on when it has all of them.
func (s *taskServer) update(c *conversation, m wire.Message, t *task) {
	open := len(t.asks)
	for answer := range wire.Members(wire.Get(m.Params, "inputResponses")) {
		key, _ := wire.Text(answer.Name)
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

func (s *taskServer) cancelTask(c *conversation, m wire.Message, t *task) {
	c.result(m, `{"resultType":"complete",`+modernInfo+`}`)
	if !t.over() {
		ended("cancelled", "")(t)
		s.changed(t)
	}
}

// changed tells those who listen to the task what it is now.
func (s *taskServer) changed(t *task) {
	for _, l := range s.listeners {
		for id := range wire.Elements(wire.Get(l.filter, "taskIds")) {
			if text, _ := wire.Text(id); text == t.id {
				l.stream.notify(wire.NoteTask, `{`+t.members()+`,`+subscription(l.id)+`}`)
			}
		}
	}
}

// base are the members that every form of a task has, members all of them.
func (t *task) base() string {
	return fmt.Sprintf(`"taskId":%q,"status":%q,"createdAt":%q,"lastUpdatedAt":%q,"ttlMs":300000,"pollIntervalMs":20`,
		t.id, t.status, t.began.UTC().Format(time.RFC3339), time.Now().UTC().Format(time.RFC3339))
}

func (t *task) members() string {
	out := t.base()
	if len(t.asks) > 0 {
		asks, _ := json.Marshal(rawValues(t.asks)) // of strings that are JSON: cannot fail
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
	return `"content":[{"type":"text","text":` + string(wire.Quote(text)) + `}]`
}

// question is an elicitation of one property.
func question(message, property, kind string) string {
	return fmt.Sprintf(`{"method":"elicitation/create","params":{"mode":"form","message":%s,"requestedSchema":`+
		`{"type":"object","properties":{%q:{"type":%q}},"required":[%[2]q]}}}`, wire.Quote(message), property, kind)
}

// HTTPTasks is the server "tasks" over HTTP, strict about the headers that mirror the body.
func HTTPTasks() http.Handler {
	server := newTaskServer()
	return postOnly(func(w http.ResponseWriter, r *http.Request, _ []byte, m wire.Message) {
		if why := mirrored(r.Header, m); why != "" && m.IsRequest() {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write(wire.Message{ID: m.ID, Error: wire.ErrorObject(wire.CodeHeaderMismatch, why, nil)}.Append(nil))
			return
		}
		if m.Method != wire.MethodListen {
			respond(w, server, m)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		stream := &conversation{out: func(message []byte) {
			_, _ = w.Write(wire.AppendEvent(nil, wire.Event{Data: message}))
			_ = http.NewResponseController(w).Flush()
		}}
		server.answer(stream, m)
		<-r.Context().Done()
		server.mu.Lock()
		defer server.mu.Unlock()
		server.forget(stream)
	})
}

// mirrored says which header does not say what the body says; empty where all do.
func mirrored(h http.Header, m wire.Message) string {
	if h.Get(wire.HeaderMethod) != m.Method {
		return wire.HeaderMethod + " is not the method"
	}
	name, ok := wire.NameOf(m.Method, m.Params)
	if !ok {
		return ""
	}
	if got, err := wire.DecodeHeader(h.Get(wire.HeaderName)); err != nil || got != name {
		return wire.HeaderName + " is not the name"
	}
	return ""
}
