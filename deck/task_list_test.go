package deck

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

// openApart is a deck whose servers no two principals share.
func openApart(t *testing.T, up *fake, listings ...drawbridge.Listing) *Deck {
	t.Helper()
	d := open(t, up, Options{SealKeys: masters}, listings...)
	var members []Server
	for _, l := range listings {
		members = append(members, Server{ID: l.Server, ConfigHash: l.ConfigHash, PerPrincipal: true})
	}
	if err := d.Configure(t.Context(), members); err != nil {
		t.Fatal(err)
	}
	return d
}

// tasksOf walks the pages of tasks/list and returns the ids, page by page.
func tasksOf(t *testing.T, d *Deck, caller drawbridge.Caller) (pages [][]string) {
	t.Helper()
	params := json.RawMessage(`{"x":1}`)
	for {
		result, err := d.Do(t.Context(), drawbridge.Call{Caller: caller, Method: mcp.MethodTasksList, Params: params})
		if err != nil {
			t.Fatal(err)
		}
		page := []string{}
		for item := range rawjson.Elements(rawjson.Get(result.Raw, "tasks")) {
			tk, ok := d.sealer.openID(caller.Principal, rawjson.GetString(item, "taskId"), legacyTaskID)
			if want := `{"taskId":"` + rawjson.GetString(item, "taskId") + `", "n":1.0}`; !ok || string(item) != want {
				t.Errorf("item %s, want %s", item, want)
			}
			page = append(page, string(tk.Server)+" "+tk.Own)
		}
		pages = append(pages, page)
		cursor := rawjson.Get(result.Raw, "nextCursor")
		if cursor == nil {
			return pages
		}
		params = rawjson.Apply(params, rawjson.Put(cursor, "cursor"))
	}
}

// paging is a server's list of tasks in two pages, and one of a single page for server "b".
func paging(id drawbridge.ServerID, call drawbridge.Call) (drawbridge.Result, error) {
	item := func(id string) string { return `{"taskId":"` + id + `", "n":1.0}` }
	raw := `{"tasks":[` + item("3") + `]}`
	switch {
	case id == "b":
		raw = `{"tasks":[` + item("1") + `,{"status":"working"}]}`
	case id == "away":
		return drawbridge.Result{}, errors.New("it is away")
	case rawjson.Get(call.Params, "cursor") == nil:
		raw = `{"tasks":[` + item("1") + `,` + item("2") + `],"nextCursor":"2"}`
	}
	return drawbridge.Result{Raw: json.RawMessage(raw)}, nil
}

func TestTheListOfTasksIsMerged(t *testing.T) {
	up := &fake{answer: paging}
	silent := legacyJobs("silent")
	silent.Capabilities = json.RawMessage(`{"tasks":{}}`)
	d := openApart(t, up, legacyJobs("b"), legacyJobs("away"), silent, legacyJobs("a"), modernJobs("m"))
	want := [][]string{{"b 1", "a 1", "a 2"}, {"a 3"}}
	if diff := cmp.Diff(want, tasksOf(t, d, stateful("ada"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	wantList(t, up.told(), `b tasks/list {"x":1}`, `away tasks/list {"x":1}`, `a tasks/list {"x":1}`,
		`a tasks/list {"x":1,"cursor":"2"}`)

	narrow := stateful("ada")
	narrow.Scopes = []drawbridge.Scope{"mcp:b"}
	if diff := cmp.Diff([][]string{{"b 1"}}, tasksOf(t, d, narrow)); diff != "" {
		t.Errorf("a caller with fewer rights (-want +got):\n%s", diff)
	}
	for what, cursor := range map[string]string{
		"a server's own":         "2",
		"another principal's":    ticketOf("bob", listCursorID, "a", "2"),
		"of a server not listed": ticketOf("ada", listCursorID, "silent", "2"),
	} {
		_, err := ask(t, d, stateful("ada"), mcp.MethodTasksList, `{"cursor":"`+cursor+`"}`, "-")
		t.Log(what)
		wantFault(t, err, drawbridge.InvalidInput, "tasks/list: unknown cursor: start again without one")
	}
}

// TestASharedServersTasksAreShownToWhoHasThem: of a server where principals meet, each sees what this deck gave them,
// or what they came with.
func TestASharedServersTasksAreShownToWhoHasThem(t *testing.T) {
	up := &fake{}
	next := "1"
	up.answer = func(id drawbridge.ServerID, call drawbridge.Call) (drawbridge.Result, error) {
		switch call.Method {
		case mcp.MethodTasksList:
			return paging(id, call)
		case mcp.MethodToolsCall:
			return drawbridge.Result{Raw: json.RawMessage(`{"task":{"taskId":"` + next + `"}}`)}, nil
		}
		return drawbridge.Result{Raw: json.RawMessage(`{}`)}, nil
	}
	d := open(t, up, Options{SealKeys: masters}, legacyJobs("a"))
	events := listen(t, d)
	status := drawbridge.ServerNotification{Server: "a", Method: mcp.NoteTaskStatus,
		Params: json.RawMessage(`{"taskId":"1", "n":1.0}`)}
	d.HandleNotification(status) // no one has it yet
	if _, err := ask(t, d, stateful("ada"), mcp.MethodToolsCall, `{"name":"a__x","task":{}}`, "-"); err != nil {
		t.Fatal(err)
	}
	if got := slices.Concat(tasksOf(t, d, stateful("ada"))...); !slices.Equal(got, []string{"a 1"}) {
		t.Errorf("ada, who has the first task, sees %v", got)
	}
	if got := slices.Concat(tasksOf(t, d, stateful("bob"))...); len(got) > 0 {
		t.Errorf("bob, who has none, sees %v", got)
	}
	kept := ticketOf("bob", legacyTaskID, "a", "3")
	if _, err := ask(t, d, stateful("bob"), mcp.MethodTasksGet, `{"taskId":"$T"}`, kept); err != nil {
		t.Fatal(err)
	}
	if got := slices.Concat(tasksOf(t, d, stateful("bob"))...); !slices.Equal(got, []string{"a 3"}) {
		t.Errorf("bob, who came with the third task, sees %v", got)
	}

	d.HandleNotification(status)
	if len(*events) != 1 {
		t.Fatalf("%d events, want one", len(*events))
	}
	e := (*events)[0]
	mine := ticketOf("ada", legacyTaskID, "a", "1")
	if want := `{"taskId":"` + mine + `", "n":1.0}`; e.Kind != TaskChanged || e.Task != mine ||
		string(e.Notification.Params) != want {
		t.Errorf("event %+v with %s", e, e.Notification.Params)
	}
	if !e.VisibleTo(stateful("ada")) || e.VisibleTo(stateful("bob")) {
		t.Error("the event concerns others than whose task it is")
	}
}

func TestAWatchedTaskIsToldOfUnderItsTicket(t *testing.T) {
	up := &fake{}
	d := open(t, up, Options{SealKeys: masters}, modernJobs("a"))
	events := listen(t, d)
	adas, bobs := ticketOf("ada", modernTaskID, "a", "7"), ticketOf("bob", modernTaskID, "a", "7")
	tell := func() (got []string) {
		*events = nil
		d.HandleNotification(drawbridge.ServerNotification{Server: "a", Method: mcp.NoteTask, Params: json.RawMessage(
			`{"taskId":"7","result":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"7"}}},"n":1.0}`)})
		for _, e := range *events {
			params := strings.NewReplacer(adas, "$A", bobs, "$B").Replace(string(e.Notification.Params))
			got = append(got, e.Principal+" "+params)
		}
		slices.Sort(got)
		return got
	}
	wantList(t, tell())
	for _, c := range []drawbridge.Caller{stateless("ada"), stateless("ada"), stateless("bob")} {
		if err := d.WatchTask(t.Context(), c, ticketOf(c.Principal, modernTaskID, "a", "7")); err != nil {
			t.Fatal(err)
		}
	}
	wantList(t, up.told(), "watch a [], tasks [7]")
	const rest = `,"result":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"`
	wantList(t, tell(), `ada {"taskId":"$A"`+rest+`$A"}}},"n":1.0}`, `bob {"taskId":"$B"`+rest+`$B"}}},"n":1.0}`)
	for range 2 {
		if err := d.UnwatchTask(t.Context(), stateless("ada"), adas); err != nil {
			t.Fatal(err)
		}
	}
	wantList(t, tell(), `bob {"taskId":"$B"`+rest+`$B"}}},"n":1.0}`)
	if err := errors.Join(d.UnwatchTask(t.Context(), stateless("bob"), bobs), d.UnwatchTask(t.Context(),
		stateless("bob"), bobs)); err != nil {
		t.Fatal(err)
	}
	wantList(t, up.told(), "watch a []")
}

// TestATaskOfAnotherProcessIsNotWatched: what is watched is the owner's process, where the same id is another task.
func TestATaskOfAnotherProcessIsNotWatched(t *testing.T) {
	up := &fake{}
	d := openApart(t, up, modernJobs("a"))
	d.owner = "ada"
	if err := d.WatchTask(t.Context(), stateless("bob"), ticketOf("bob", modernTaskID, "a", "7")); err == nil {
		t.Error("bob watches a task of ada's process")
	}
	if err := d.WatchTask(t.Context(), stateless("ada"), ticketOf("ada", modernTaskID, "a", "7")); err != nil {
		t.Error(err)
	}
	wantList(t, up.told(), "watch a [], tasks [7]")
}
