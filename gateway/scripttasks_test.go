//go:build !nomcp

package gateway

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/sandbox"
)

// notesConfig returns a configuration in which a person is asked before a note is written, and the file of the notes.
func notesConfig(t *testing.T) (c Config, file string) {
	t.Helper()
	home := t.TempDir()
	file = filepath.Join(home, "notes.txt")
	server := row(t, "notes", "notes")
	server.Args = append(server.Args, file)
	asks := drawbridge.Rules{Default: drawbridge.Allow, Rules: []drawbridge.Rule{{Effect: drawbridge.Ask, Tools: []string{"notes__note"}}}}
	return Config{
		Servers: []config.Server{server}, Store: filepath.Join(home, "store.db"), Rules: &asks,
		Discovery: &config.ToolDiscovery{Mode: "code"},
		LookupEnv: func(name string) (string, bool) {
			v, ok := map[string]string{"HOME": home, "DRAWBRIDGE_KEYCHAIN": "off", "XDG_CACHE_HOME": cacheDir(t)}[name]
			return v, ok
		},
	}, file
}

// cacheDir returns the directory in which the compiled interpreter is kept for all tests.
func cacheDir(t *testing.T) string {
	t.Helper()
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// pendingApproval waits for an approval request and returns its ID.
func pendingApproval(t *testing.T, g *Gateway) string {
	t.Helper()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for end := time.After(60 * time.Second); ; {
		all, err := g.shared.db.PendingApprovals(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 1 {
			return all[0].ID
		}
		select {
		case <-poll.C:
		case <-end:
			t.Fatalf("%d approval requests", len(all))
		}
	}
}

func allowOnce(t *testing.T, g *Gateway, id string) {
	t.Helper()
	if err := g.shared.db.AnswerPendingApproval(t.Context(), id, store.AnswerAllowed, "a test", nil, 0); err != nil {
		t.Fatal(err)
	}
}

const noteTask = `{"name":"run_python","arguments":{"code":"print(tools.notes.note(text='one')['lines'])"}`

func wantFile(t *testing.T, file, want string) {
	t.Helper()
	if text, err := os.ReadFile(file); err != nil || string(text) != want {
		t.Errorf("the file has %q, %v, want %q", text, err, want)
	}
}

// TestAScriptTaskIsResumed closes the gateway while a person is asked. The task has the same ID in the next gateway, and
// its effect happens once.
func TestAScriptTaskIsResumed(t *testing.T) {
	c, file := notesConfig(t)
	first := open(t, c)
	caller := first.Owner()
	caller.Era, caller.Session, caller.Protocol = drawbridge.Legacy, "s", mcp.Version20251125
	if caps := first.Deck().Capabilities(caller); rawjson.Get(caps, "tasks", "requests", "tools", "call") == nil {
		t.Errorf("the capabilities are %s", caps)
	}
	created, err := request(t, first, caller, mcp.MethodToolsCall, noteTask+`,"task":{"ttl":60000}}`)
	id := rawjson.GetString(created, "task", "taskId")
	if errors.Is(err, sandbox.ErrNoInterpreter) {
		t.Skip(err)
	}
	if err != nil || id == "" || rawjson.GetString(created, "task", "status") != "working" ||
		string(rawjson.Get(created, "task", "ttl")) != "60000" {
		t.Fatalf("%s, %v", created, err)
	}
	asked := pendingApproval(t, first)
	closeIt(t, first)

	second := open(t, c)
	params := `{"taskId":"` + id + `"}`
	task, err := request(t, second, caller, mcp.MethodTasksGet, params)
	if err != nil || rawjson.GetString(task, "status") != "working" || rawjson.GetString(task, "taskId") != id {
		t.Fatalf("after a restart: %s, %v", task, err)
	}
	if again := pendingApproval(t, second); again != asked {
		t.Errorf("another request: %s, not %s", again, asked)
	}
	other := caller
	other.Principal = "another"
	if _, err := request(t, second, other, mcp.MethodTasksGet, params); err == nil {
		t.Error("another principal has the task")
	}
	allowOnce(t, second, asked)
	result, err := request(t, second, caller, mcp.MethodTasksResult, params)
	if err != nil || !strings.Contains(string(result), `"stdout":"1\n"`) ||
		rawjson.GetString(result, "_meta", mcp.MetaRelatedTask, "taskId") != id {
		t.Errorf("the result is %s, %v", result, err)
	}
	wantFile(t, file, "one\n")
	list, err := request(t, second, caller, mcp.MethodTasksList, `{}`)
	if err != nil || rawjson.GetString(list, "tasks") != "" || !strings.Contains(string(list), `"taskId":"`+id+`","status":"completed"`) {
		t.Errorf("the list is %s, %v", list, err)
	}
}

// TestACancelledScriptTask is not resumed: not by its client, and not after a restart.
func TestACancelledScriptTask(t *testing.T) {
	c, file := notesConfig(t)
	first := open(t, c)
	caller := first.Owner()
	caller.Era, caller.Session, caller.Protocol = drawbridge.Legacy, "s", mcp.Version20251125
	created, err := request(t, first, caller, mcp.MethodToolsCall, noteTask+`,"task":{}}`)
	if errors.Is(err, sandbox.ErrNoInterpreter) {
		t.Skip(err)
	}
	params := `{"taskId":"` + rawjson.GetString(created, "task", "taskId") + `"}`
	pendingApproval(t, first)
	task, err := request(t, first, caller, mcp.MethodTasksCancel, params)
	if err != nil || rawjson.GetString(task, "status") != "cancelled" {
		t.Errorf("%s, %v", task, err)
	}
	if all, err := first.shared.db.PendingApprovals(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("a person is still asked: %v, %v", all, err)
	}
	closeIt(t, first)
	second := open(t, c)
	_, err = request(t, second, caller, mcp.MethodTasksGet, params)
	if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || f.Code != drawbridge.NotFound {
		t.Errorf("after a restart: %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the note was written")
	}
}

// TestAStatelessCallBecomesATask: a call that ends soon has its result, and one that waits for a person becomes a task.
func TestAStatelessCallBecomesATask(t *testing.T) {
	c, file := notesConfig(t)
	g := open(t, c)
	caller := g.Owner()
	caller.Capabilities = json.RawMessage(tasksDeclared)
	if caps := g.Deck().Capabilities(caller); rawjson.Get(caps, "extensions", mcp.ExtensionTasks) == nil {
		t.Errorf("the capabilities are %s", caps)
	}
	soon, err := request(t, g, caller, mcp.MethodToolsCall, `{"name":"run_python","arguments":{"code":"print(1)"}}`)
	if errors.Is(err, sandbox.ErrNoInterpreter) {
		t.Skip(err)
	}
	if err != nil || rawjson.GetString(soon, "resultType") == "task" {
		t.Errorf("a call that ends soon: %s, %v", soon, err)
	}
	created, err := request(t, g, caller, mcp.MethodToolsCall, noteTask+`}`)
	id := rawjson.GetString(created, "taskId")
	if err != nil || id == "" || rawjson.GetString(created, "resultType") != "task" {
		t.Fatalf("a call that waits: %s, %v", created, err)
	}
	params := `{"taskId":"` + id + `"}`
	task, err := request(t, g, caller, mcp.MethodTasksGet, params)
	if err != nil || rawjson.GetString(task, "status") != "working" || !strings.Contains(rawjson.GetString(task, "statusMessage"), "approval") {
		t.Errorf("the task is %s, %v", task, err)
	}
	allowOnce(t, g, pendingApproval(t, g))
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for end := time.After(30 * time.Second); rawjson.GetString(task, "status") == "working"; {
		select {
		case <-poll.C:
		case <-end:
			t.Fatalf("the task is %s", task)
		}
		if task, err = request(t, g, caller, mcp.MethodTasksGet, params); err != nil {
			t.Fatal(err)
		}
	}
	if rawjson.GetString(task, "status") != "completed" || rawjson.GetString(task, "result", "structuredContent", "stdout") != "1\n" {
		t.Errorf("the task is %s", task)
	}
	wantFile(t, file, "one\n")
}
