//go:build !nomcp

package gateway

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

const tasksDeclared = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`

// request carries out a request by the deck and returns its result.
func request(t *testing.T, g *Gateway, caller drawbridge.Caller, method, params string) (json.RawMessage, error) {
	t.Helper()
	result, err := g.Deck().Do(t.Context(), drawbridge.Call{Caller: caller, Method: method,
		Params: json.RawMessage(params)})
	return result.Raw, err
}

func TestATaskOutlivesTheGateway(t *testing.T) {
	upstream := httptest.NewServer(mcptest.HTTPTasks())
	defer upstream.Close()
	c := Config{Servers: []config.Server{{ID: "jobs", URL: upstream.URL}},
		Store: filepath.Join(t.TempDir(), "store.db")}
	first := open(t, c)
	loaded(t, first)
	caller := first.Owner()
	caller.Capabilities = json.RawMessage(tasksDeclared)
	created, err := request(t, first, caller, mcp.MethodToolsCall,
		`{"name":"jobs__confirm_delete","arguments":{"filename":"x"}}`)
	id := rawjson.GetString(created, "taskId")
	if err != nil || id == "" {
		t.Fatalf("%s, %v", created, err)
	}
	closeIt(t, first)

	second := open(t, c)
	params := `{"taskId":"` + id + `"}`
	task, err := request(t, second, caller, mcp.MethodTasksGet, params)
	if err != nil || rawjson.GetString(task, "status") != "input_required" || rawjson.GetString(task, "taskId") != id ||
		rawjson.GetString(task, "inputRequests", "confirm", "params", "_meta", "drawbridge/server") != "jobs" {
		t.Errorf("after a restart: %s, %v", task, err)
	}
	other := caller
	other.Principal = "another"
	c.Store = MemoryStore
	for what, try := range map[string]func() (json.RawMessage, error){
		"another principal": func() (json.RawMessage, error) {
			return request(t, second, other,
				mcp.MethodTasksGet, params)
		},
		"another store": func() (json.RawMessage, error) {
			return request(t, openOnly(t, c), caller, mcp.MethodTasksGet, params)
		},
	} {
		_, err := try()
		if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || f.Code != drawbridge.NotFound ||
			f.Error() != "unknown task "+id {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestAListenerHearsWhatBecomesOfATask: from the server's stream to the client's, by the id that the client knows.
func TestAListenerHearsWhatBecomesOfATask(t *testing.T) {
	upstream := httptest.NewServer(mcptest.HTTPTasks())
	defer upstream.Close()
	g := open(t, Config{Servers: []config.Server{{ID: "jobs", URL: upstream.URL}}})
	loaded(t, g)
	door := httptest.NewServer(g.Server().Handler())
	t.Cleanup(door.Close)
	caller := g.Owner()
	caller.Capabilities = json.RawMessage(tasksDeclared)
	created, err := request(t, g, caller, mcp.MethodToolsCall, `{"name":"jobs__confirm_delete","arguments":{}}`)
	if err != nil {
		t.Fatal(err)
	}
	id := rawjson.GetString(created, "taskId")

	body := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"taskIds":["` + id +
		`","task-1"]},"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` +
		tasksDeclared + `}}}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, door.URL+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set(mcp.HeaderVersion, mcp.Version20260728)
	req.Header.Set(mcp.HeaderMethod, mcp.MethodListen)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	events := mcp.NewSSEReader(resp.Body, 0)
	read := func() json.RawMessage {
		t.Helper()
		e, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		return e.Data
	}
	if ack := read(); string(rawjson.Get(ack, "params", "notifications")) != `{"taskIds":["`+id+`"]}` {
		t.Fatalf("the acknowledgement is %s", ack)
	}
	if _, err := request(t, g, caller, mcp.MethodTasksUpdate, `{"taskId":"`+id+
		`","inputResponses":{"confirm":{"action":"accept"}}}`); err != nil {
		t.Fatal(err)
	}
	note := read()
	if rawjson.GetString(note, "method") != mcp.NoteTask || rawjson.GetString(note, "params", "taskId") != id ||
		rawjson.GetString(note, "params", "status") != "completed" ||
		string(rawjson.Get(note, "params", "_meta", mcp.MetaSubscriptionID)) != "1" {
		t.Errorf("the listener hears %s", note)
	}
}

// TestALegacyTaskThroughTheGateway: asked for, told of, listed, fetched and cancelled under one id.
func TestALegacyTaskThroughTheGateway(t *testing.T) {
	g := open(t, Config{Servers: []config.Server{row(t, "jobs", "tasks-legacy")}})
	loaded(t, g)
	caller := g.Owner()
	caller.Era, caller.Session, caller.Protocol = drawbridge.Legacy, "s", mcp.Version20251125
	told := make(chan deck.Event, 10)
	defer g.Deck().OnEvent(func(e deck.Event) {
		if e.Kind == deck.TaskChanged {
			told <- e
		}
	})()
	do := func(method, params string) json.RawMessage {
		t.Helper()
		raw, err := request(t, g, caller, method, params)
		if err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		return raw
	}
	id := rawjson.GetString(do(mcp.MethodToolsCall, `{"name":"jobs__research","arguments":{"text":"found"},"task":{}}`),
		"task", "taskId")
	if id == "" || id == "task-1" {
		t.Fatalf("the task's id is %q", id)
	}
	params := `{"taskId":"` + id + `"}`
	if got := do(mcp.MethodTasksResult, params); rawjson.GetString(got, "_meta", mcp.MetaRelatedTask, "taskId") != id ||
		!strings.Contains(string(got), `"text":"found"`) {
		t.Errorf("the result is %s", got)
	}
	select {
	case e := <-told:
		if e.Task != id || rawjson.GetString(e.Notification.Params, "taskId") != id || !e.VisibleTo(caller) {
			t.Errorf("the event is %+v with %s", e, e.Notification.Params)
		}
	case <-time.After(30 * time.Second):
		t.Error("no one tells of the task")
	}
	held := rawjson.GetString(do(mcp.MethodToolsCall, `{"name":"jobs__hold","task":{}}`), "task", "taskId")
	if got := do(mcp.MethodTasksCancel, `{"taskId":"`+held+`"}`); rawjson.GetString(got, "taskId") != held ||
		rawjson.GetString(got, "status") != "cancelled" {
		t.Errorf("the cancelled task is %s", got)
	}
	var ids []string
	for item := range rawjson.Elements(rawjson.Get(do(mcp.MethodTasksList, `{}`), "tasks")) {
		ids = append(ids, rawjson.GetString(item, "taskId"))
	}
	want(t, ids, id, held)
	if got := do(mcp.MethodTasksGet, params); rawjson.GetString(got, "status") != "completed" {
		t.Errorf("the task is %s", got)
	}
}
