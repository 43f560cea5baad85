package mcptest

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// legacyTaskServer is a server of the stateful generation with the experimental tasks of 2025-11-25. Its tools:
//
//	echo {text}      returns the text; as a task if the call requests one
//	research {text}  returns the text; can only be called as a task
//	interview {}     starts a task that asks for a name when its result is fetched, and greets that name
//	hold {}          starts a task that runs until it is cancelled
//
// The server sends the status notifications of a task outside of any request. The IDs of its tasks can be guessed, so
// they must not be used as secrets.
type legacyTaskServer struct {
	methods methodTable

	mu    sync.Mutex
	tasks []*legacyTask
}

// A legacyTask is a task of a legacyTaskServer. waiting contains the tasks/result requests that are answered when the
// task ends.
type legacyTask struct {
	id, status, text string
	began            time.Time
	waiting          []mcp.Message
	timer            *time.Timer
}

func newLegacyTasks() *legacyTaskServer {
	s := &legacyTaskServer{}
	tool := func(name, support string) string {
		return fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"},"execution":{"taskSupport":%q}}`, name, support)
	}
	s.methods = legacyServer().with(methodTable{
		mcp.MethodInitialize: func(c *messageStream, m mcp.Message) {
			c.result(m, initializeResult(m,
				`{"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}`))
		},
		mcp.MethodToolsList: alwaysAnswer(`{"tools":[` + strings.Join([]string{
			tool("echo", "optional"), tool("research", "required"), tool("interview", "required"),
			tool("hold", "required"),
		}, ",") + `]}`),
		mcp.MethodToolsCall: s.call,
		mcp.MethodTasksList: s.list,
		mcp.MethodTasksGet: s.withTask(func(c *messageStream, m mcp.Message, t *legacyTask) {
			c.result(m, "{"+
				t.members()+"}")
		}),
		mcp.MethodTasksCancel: s.withTask(s.cancel),
		mcp.MethodTasksResult: s.withTask(s.result),
	})
	return s
}

func (s *legacyTaskServer) handle(c *messageStream, m mcp.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Method == "" {
		s.answered(c, m)
		return
	}
	s.methods.handle(c, m)
}

func (s *legacyTaskServer) withTask(answer func(*messageStream, mcp.Message, *legacyTask)) func(
	*messageStream, mcp.Message) {
	return func(c *messageStream, m mcp.Message) {
		if t := s.find(rawjson.GetString(m.Params, "taskId")); t != nil {
			answer(c, m, t)
			return
		}
		c.fail(m, mcp.CodeInvalidParams, "no such task")
	}
}

func (s *legacyTaskServer) find(id string) *legacyTask {
	for _, t := range s.tasks {
		if t.id == id {
			return t
		}
	}
	return nil
}

func (s *legacyTaskServer) call(c *messageStream, m mcp.Message) {
	name, text := rawjson.GetString(m.Params, "name"), rawjson.GetString(m.Params, "arguments", "text")
	switch {
	case rawjson.Get(m.Params, "task") == nil && name == "echo":
		c.text(m, text)
		return
	case rawjson.Get(m.Params, "task") == nil:
		c.fail(m, mcp.CodeMethodNotFound, name+" is only to be had as a task")
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

// end ends a task, sends a notification with its new status, and answers the waiting tasks/result requests.
func (s *legacyTaskServer) end(c *messageStream, t *legacyTask, status string) {
	t.status = status
	c.notify(mcp.NoteTaskStatus, "{"+t.members()+"}")
	for _, m := range t.waiting {
		s.finish(c, m, t)
	}
	t.waiting = nil
}

func (s *legacyTaskServer) finish(c *messageStream, m mcp.Message, t *legacyTask) {
	if t.status == "cancelled" {
		c.fail(m, mcp.CodeInternal, "the task was cancelled")
		return
	}
	c.result(m, `{`+textMember(t.text)+`,"_meta":{`+t.related()+`}}`)
}

// result handles a tasks/result request. It responds when the task has ended. If the task needs input, it first sends
// the task's question to the client.
func (s *legacyTaskServer) result(c *messageStream, m mcp.Message, t *legacyTask) {
	switch t.status {
	case "completed", "cancelled":
		s.finish(c, m, t)
		return
	case "input_required":
		c.say(mcp.Message{ID: rawjson.Quote(t.id), Method: mcp.MethodElicitation, Params: []byte(
			`{"mode":"form","message":"Who are you?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}},` +
				`"_meta":{` + t.related() + `}}`)})
	}
	t.waiting = append(t.waiting, m)
}

// answered handles the client's response to a task's question.
func (s *legacyTaskServer) answered(c *messageStream, m mcp.Message) {
	id, _ := rawjson.DecodeString(m.ID)
	t := s.find(id)
	if t == nil || t.status != "input_required" {
		return
	}
	t.text = "hello, nobody"
	if name := rawjson.GetString(m.Result, "content", "name"); name != "" {
		t.text = "hello, " + name
	}
	if related := rawjson.GetString(m.Result, "_meta", mcp.MetaRelatedTask, "taskId"); related != "" &&
		related != t.id {
		t.text = "that was about another task: " + related
	}
	s.end(c, t, "completed")
}

func (s *legacyTaskServer) cancel(c *messageStream, m mcp.Message, t *legacyTask) {
	if t.status != "working" && t.status != "input_required" {
		c.fail(m, mcp.CodeInvalidParams, "the task is over")
		return
	}
	s.end(c, t, "cancelled")
	c.result(m, "{"+t.members()+"}")
}

// list handles tasks/list. It returns two tasks per page. The cursor of the next page is the ID of the last task on
// this page.
func (s *legacyTaskServer) list(c *messageStream, m mcp.Message) {
	const page = 2
	start := 0
	if cursor := rawjson.GetString(m.Params, "cursor"); cursor != "" {
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
	return fmt.Sprintf(`%q:{"taskId":%q}`, mcp.MetaRelatedTask, t.id)
}

// taskServers returns the named servers that support tasks.
func taskServers() []namedServer {
	return []namedServer{
		{"tasks", "", "the tasks extension with the tools of the suite, stateless generation", func(serverArgs) int {
			return serveStdio(newTaskServer(), stdout(), nil)
		}},
		{"tasks-legacy", "", "the tasks of 2025-11-25, stateful generation", func(serverArgs) int {
			return serveStdio(newLegacyTasks(), stdout(), nil)
		}},
	}
}
