package mcptest

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// legacyTasks is a server of the stateful generation with the experimental tasks of 2025-11-25. Its tools:
//
//	echo {text}      says the text again; a task, where the call wants one
//	research {text}  says the text again, and is only to be had as a task
//	interview {}     a task that asks for a name when its result is fetched, and greets it
//	hold {}          a task that lasts until it is cancelled
//
// A task's status is told without being asked for. As with "tasks", ids can be guessed.
type legacyTasks struct {
	methods handMade

	mu    sync.Mutex
	tasks []*legacyTask
}

// A legacyTask is over when status says so; waiting are the requests for its result until then.
type legacyTask struct {
	id, status, text string
	began            time.Time
	waiting          []wire.Message
	timer            *time.Timer
}

func newLegacyTasks() *legacyTasks {
	s := &legacyTasks{}
	tool := func(name, support string) string {
		return fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"},"execution":{"taskSupport":%q}}`, name, support)
	}
	s.methods = legacyServer().with(handMade{
		wire.MethodInitialize: func(c *conversation, m wire.Message) {
			c.result(m, initializeResult(m, `{"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}`))
		},
		wire.MethodToolsList: always(`{"tools":[` + strings.Join([]string{
			tool("echo", "optional"), tool("research", "required"), tool("interview", "required"), tool("hold", "required"),
		}, ",") + `]}`),
		wire.MethodToolsCall:   s.call,
		wire.MethodTasksList:   s.list,
		wire.MethodTasksGet:    s.withTask(func(c *conversation, m wire.Message, t *legacyTask) { c.result(m, "{"+t.members()+"}") }),
		wire.MethodTasksCancel: s.withTask(s.cancel),
		wire.MethodTasksResult: s.withTask(s.result),
	})
	return s
}

func (s *legacyTasks) answer(c *conversation, m wire.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Method == "" {
		s.answered(c, m)
		return
	}
	s.methods.answer(c, m)
}

func (s *legacyTasks) withTask(answer func(*conversation, wire.Message, *legacyTask)) func(*conversation, wire.Message) {
	return func(c *conversation, m wire.Message) {
		if t := s.find(wire.GetText(m.Params, "taskId")); t != nil {
			answer(c, m, t)
			return
		}
		c.fail(m, wire.CodeInvalidParams, "no such task")
	}
}

func (s *legacyTasks) find(id string) *legacyTask {
	for _, t := range s.tasks {
		if t.id == id {
			return t
		}
	}
	return nil
}

func (s *legacyTasks) call(c *conversation, m wire.Message) {
	name, text := wire.GetText(m.Params, "name"), wire.GetText(m.Params, "arguments", "text")
	switch {
	case wire.Get(m.Params, "task") == nil && name == "echo":
		c.text(m, text)
		return
	case wire.Get(m.Params, "task") == nil:
		c.fail(m, wire.CodeMethodNotFound, name+" is only to be had as a task")
		return
	}
	t := &legacyTask{id: fmt.Sprintf("task-%d", len(s.tasks)+1), status: "working", text: text, began: time.Now()}
	s.tasks = append(s.tasks, t)
	c.result(m, `{"task":{`+t.members()+`}}`)
	switch name {
	case "interview":
		t.status = "input_required"
	case "echo", "research":
		t.timer = time.AfterFunc(jobTime, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if t.status == "working" {
				s.end(c, t, "completed")
			}
		})
	}
}

// end ends a task, tells of it, and answers who waits for its result.
func (s *legacyTasks) end(c *conversation, t *legacyTask, status string) {
	t.status = status
	c.notify(wire.NoteTaskStatus, "{"+t.members()+"}")
	for _, m := range t.waiting {
		s.finish(c, m, t)
	}
	t.waiting = nil
}

func (s *legacyTasks) finish(c *conversation, m wire.Message, t *legacyTask) {
	if t.status == "cancelled" {
		c.fail(m, wire.CodeInternal, "the task was cancelled")
		return
	}
	c.result(m, `{`+textMember(t.text)+`,"_meta":{`+t.related()+`}}`)
}

// result answers when the task is over. A task that wants input asks for it now.
func (s *legacyTasks) result(c *conversation, m wire.Message, t *legacyTask) {
	switch t.status {
	case "completed", "cancelled":
		s.finish(c, m, t)
		return
	case "input_required":
		c.say(wire.Message{ID: wire.Quote(t.id), Method: wire.MethodElicitation, Params: []byte(
			`{"mode":"form","message":"Who are you?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}},` +
				`"_meta":{` + t.related() + `}}`)})
	}
	t.waiting = append(t.waiting, m)
}

// answered takes the answer to a task's question, or the refusal of one.
func (s *legacyTasks) answered(c *conversation, m wire.Message) {
	id, _ := wire.Text(m.ID)
	t := s.find(id)
	if t == nil || t.status != "input_required" {
		return
	}
	t.text = "hello, nobody"
	if name := wire.GetText(m.Result, "content", "name"); name != "" {
		t.text = "hello, " + name
	}
	if related := wire.GetText(m.Result, "_meta", wire.MetaRelatedTask, "taskId"); related != "" && related != t.id {
		t.text = "that was about another task: " + related
	}
	s.end(c, t, "completed")
}

func (s *legacyTasks) cancel(c *conversation, m wire.Message, t *legacyTask) {
	if t.status != "working" && t.status != "input_required" {
		c.fail(m, wire.CodeInvalidParams, "the task is over")
		return
	}
	s.end(c, t, "cancelled")
	c.result(m, "{"+t.members()+"}")
}

// list gives two tasks a page; the cursor is the id of the last one.
func (s *legacyTasks) list(c *conversation, m wire.Message) {
	const page = 2
	start := 0
	if cursor := wire.GetText(m.Params, "cursor"); cursor != "" {
		for start < len(s.tasks) && s.tasks[start].id != cursor {
			start++
		}
		start++
	}
	var items []string
	next := ""
	for i := start; i < len(s.tasks); i++ {
		if len(items) == page {
			next = fmt.Sprintf(`,"nextCursor":%q`, s.tasks[i-1].id)
			break
		}
		items = append(items, "{"+s.tasks[i].members()+"}")
	}
	c.result(m, `{"tasks":[`+strings.Join(items, ",")+`]`+next+`}`)
}

func (t *legacyTask) members() string {
	return fmt.Sprintf(`"taskId":%q,"status":%q,"createdAt":%q,"lastUpdatedAt":%q,"ttl":300000,"pollInterval":20`,
		t.id, t.status, t.began.UTC().Format(time.RFC3339), time.Now().UTC().Format(time.RFC3339))
}

func (t *legacyTask) related() string {
	return fmt.Sprintf(`%q:{"taskId":%q}`, wire.MetaRelatedTask, t.id)
}

// taskServers are the servers whose calls may outlive their answer.
func taskServers() []behaviour {
	return []behaviour{
		{"tasks", "", "the tasks extension with the tools of the suite, stateless generation", func(arguments) int {
			return serveStdio(newTaskServer(), stdout(), nil)
		}},
		{"tasks-legacy", "", "the tasks of 2025-11-25, stateful generation", func(arguments) int {
			return serveStdio(newLegacyTasks(), stdout(), nil)
		}},
	}
}
