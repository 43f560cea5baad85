package server

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

// listenTo opens a subscriptions/listen stream.
func listenTo(t *testing.T, url, notifications string) (events *mcp.SSEReader, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := modernRequest(t, url, `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":`+
		notifications+`,`+meta+`}}`)
	resp, err := http.DefaultClient.Do(r.WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	if got := resp.Header.Get("X-Accel-Buffering"); got != "no" {
		t.Errorf("X-Accel-Buffering is %q", got)
	}
	return mcp.NewSSEReader(resp.Body, 0), func() { cancel(); resp.Body.Close() }
}

const tag7 = `"_meta":{"io.modelcontextprotocol/subscriptionId":7`

// TestListen shows that a listener hears what it asked for and nothing else.
func TestListen(t *testing.T) {
	d := newFakeDeck()
	url := serveHTTP(t, d, Options{})
	events, end := listenTo(t, url,
		`{"toolsListChanged":true,"promptsListChanged":false,"resourceSubscriptions":["test://watched"]}`)
	defer end()
	want := func(data string) {
		t.Helper()
		if diff := cmp.Diff(data, next(t, events)); diff != "" {
			t.Errorf("event (-want +got):\n%s", diff)
		}
	}
	want(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["test://watched"]},` + tag7 + `}}}`)
	d.tell(deck.Event{Kind: deck.PromptsChanged})
	d.tell(deck.Event{Kind: deck.ResourcesChanged})
	d.tell(deck.Event{Kind: deck.ServerNotified, Notification: drawbridge.ServerNotification{Method: mcp.NoteMessage}})
	d.tell(deck.Event{Kind: deck.ResourceUpdated, URI: "test://other"})
	d.tell(deck.Event{Kind: deck.ResourceUpdated, URI: watchedURI,
		Notification: drawbridge.ServerNotification{Params: []byte(`{"uri":"test://watched","_meta":{"x":1}}`)}})
	want(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://watched","_meta":{"x":1,"io.modelcontextprotocol/subscriptionId":7}}}`)
	d.tell(deck.Event{Kind: deck.ToolsChanged})
	want(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{` + tag7 + `}}}`)
}

// TestListenToSome: the URIs of a listener reach the deck together, and those that it refuses are not agreed to.
func TestListenToSome(t *testing.T) {
	d := newFakeDeck()
	s := newServer(t, d, Options{})
	events, end := listenTo(t, serveOn(t, s),
		`{"resourceSubscriptions":["test://1","test://missing","test://2","test://1"]}`)
	defer end()
	want := `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"resourceSubscriptions":["test://1","test://2"]},` + tag7 + `}}}`
	if diff := cmp.Diff(want, next(t, events)); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	_ = s.Close() // waits for the listener
	if diff := cmp.Diff([]string{"subscribe test://1 test://missing test://2", "unsubscribe test://1 test://2"},
		d.noted()); diff != "" {
		t.Errorf("the deck was told (-want +got):\n%s", diff)
	}
}

// A taskFake is a fakeDeck with one task, "mine", for callers who know tasks.
type taskFake struct{ *fakeDeck }

func (d taskFake) WatchTask(_ context.Context, caller drawbridge.Caller, id string) error {
	if rawjson.Get(caller.Capabilities, "extensions") == nil {
		return &drawbridge.Fault{Raw: mcp.NewErrorObject(mcp.CodeMissingCapability, "no tasks", nil)}
	}
	if id != "mine" {
		return &drawbridge.Fault{Kind: drawbridge.UnknownCapability, Code: drawbridge.NotFound, Step: "unknown task"}
	}
	return d.note("watch task", id)
}

func (d taskFake) UnwatchTask(_ context.Context, _ drawbridge.Caller, id string) error {
	return d.note("unwatch task", id)
}

// TestListenToTasks: what is agreed to is told, each task's last state, and other tasks' are not.
func TestListenToTasks(t *testing.T) {
	d := taskFake{newFakeDeck()}
	s := newServer(t, d, Options{})
	url := serveOn(t, s)
	const notifications = `{"taskIds":["theirs","mine","mine",7]}`
	refused := modernRequest(t, url,
		`{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":`+
			notifications+`,`+meta+`}}`)
	if status, body := send(t, refused); status != http.StatusBadRequest ||
		mcp.ErrorCode(rawjson.Get([]byte(body), "error")) != mcp.CodeMissingCapability {
		t.Errorf("a client that did not declare tasks: %d %s", status, body)
	}
	declared := strings.Replace(meta, `clientCapabilities":{}`,
		`clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, 1)
	resp, err := http.DefaultClient.Do(modernRequest(t, url,
		`{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":`+notifications+
			`,`+declared+`}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	events := mcp.NewSSEReader(resp.Body, 0)
	want := func(data string) {
		t.Helper()
		if diff := cmp.Diff(data, next(t, events)); diff != "" {
			t.Errorf("event (-want +got):\n%s", diff)
		}
	}
	want(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"taskIds":["mine"]},` + tag7 + `}}}`)
	note := func(method, task string) {
		d.tell(deck.Event{Kind: deck.TaskChanged, Task: task,
			Notification: drawbridge.ServerNotification{Method: method, Params: []byte(`{"taskId":"` + task + `"}`)}})
	}
	note(mcp.NoteTask, "theirs")
	note(mcp.NoteTaskStatus, "mine")
	note(mcp.NoteTask, "mine")
	want(`{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"mine",` + tag7 + `}}}`)
	_ = s.Close() // waits for the listener
	if got := d.noted(); !slices.Equal(got, []string{"watch task mine", "unwatch task mine"}) {
		t.Errorf("the deck was told %q", got)
	}
}

// TestASessionHearsOfItsPrincipalsTasks: in the words of its own generation, and as any other notice.
func TestASessionHearsOfItsPrincipalsTasks(t *testing.T) {
	w := newWatcher(owner, nil, listChanges{})
	w.attachReader()
	for method, principal := range map[string]string{mcp.NoteTaskStatus: "me", mcp.NoteTask: "me",
		"of another": "you"} {
		w.addEvent(deck.Event{Kind: deck.TaskChanged, Task: "t", Principal: principal,
			Notification: drawbridge.ServerNotification{Method: method}})
	}
	if got := w.takeNotifications(); len(got) != 1 ||
		string(got[0]) != `{"jsonrpc":"2.0","method":"notifications/tasks/status"}` {
		t.Errorf("it hears %q", got)
	}
}

// TestListenToNothing: what the deck does not have is not agreed to, and nothing to wait for is the end.
func TestListenToNothing(t *testing.T) {
	d := newFakeDeck()
	d.capabilities = `{"tools":{}}`
	events, end := listenTo(t, serveHTTP(t, d, Options{}),
		`{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["test://watched"]}`)
	defer end()
	for _, want := range []string{
		`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{},` + tag7 +
			`}}}`,
		`{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete",` + tag7 + `,"io.modelcontextprotocol/serverInfo":` +
			ourInfo + `}}}`,
	} {
		if diff := cmp.Diff(want, next(t, events)); diff != "" {
			t.Errorf("event (-want +got):\n%s", diff)
		}
	}
}

// TestListenEndsWithUs: the last word is the answer to the request.
func TestListenEndsWithUs(t *testing.T) {
	d := newFakeDeck()
	s := newServer(t, d, Options{})
	url := serveOn(t, s)
	events, end := listenTo(t, url, `{"resourceSubscriptions":["test://watched"]}`)
	defer end()
	next(t, events)
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	if diff := cmp.Diff(`{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete",`+tag7+
		`,"io.modelcontextprotocol/serverInfo":`+ourInfo+`}}}`, next(t, events)); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"subscribe test://watched", "unsubscribe test://watched"}, d.noted()); diff != "" {
		t.Errorf("the deck was told (-want +got):\n%s", diff)
	}
}

func TestListenRefuses(t *testing.T) {
	url := serveHTTP(t, newFakeDeck(), Options{})
	r := modernRequest(t, url, `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{`+meta+`}}`)
	status, body := send(t, r)
	if want := `{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Missing notifications"}}`; status != 400 ||
		body != want {
		t.Errorf("without notifications: %d %s", status, body)
	}
	r = modernRequest(t, url, `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{},`+
		meta+`}}`)
	r.Header.Set("Accept", "application/json")
	if status, _ := send(t, r); status != 406 {
		t.Errorf("a client that takes no stream: %d", status)
	}
}

// TestNoticesAreBounded: who does not read misses notices, and costs bounded memory.
func TestNoticesAreBounded(t *testing.T) {
	w := newWatcher(owner, nil, listChanges{})
	w.attachReader()
	for range 10 * maxNotices {
		w.addEvent(deck.Event{Kind: deck.ServerNotified,
			Notification: drawbridge.ServerNotification{Method: mcp.NoteMessage}})
	}
	if got := len(w.takeNotifications()); got != maxNotices {
		t.Errorf("%d notices wait, want %d", got, maxNotices)
	}
}
