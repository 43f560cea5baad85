package deck

import (
	"encoding/json"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

// linkers opens a deck of two servers with resources, whose every answer but to resources/read is result.
func linkers(t *testing.T, o Options, result string) (*Deck, *fake) {
	up := &fake{answer: func(_ drawbridge.ServerID, c drawbridge.Call) (drawbridge.Result, error) {
		if c.Method == mcp.MethodResourcesRead {
			return drawbridge.Result{Raw: json.RawMessage(`{"contents":[]}`)}, nil
		}
		return drawbridge.Result{Raw: json.RawMessage(result)}, nil
	}}
	o.SealKeys = masters
	a, b := library("a", []string{"listed:b"}, nil), library("b", nil, []string{"made:{x}"})
	for _, l := range []*drawbridge.Listing{&a, &b} {
		l.Tools, l.Prompts = []json.RawMessage{tool("look")}, objects("name", "ask")
		l.Era = drawbridge.Modern
		l.Capabilities = json.RawMessage(`{"resources":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`)
	}
	return open(t, up, o, a, b), up
}

// TestALinkLeadsToWhoGaveIt: a resource that is linked to need not be in any list.
func TestALinkLeadsToWhoGaveIt(t *testing.T) {
	task := objects("taskId", ticketOf("ada", modernTaskID, "b", "7"))[0]
	for _, tt := range []struct {
		name, method string
		params       json.RawMessage
		result       string
	}{
		{"a tool that links", mcp.MethodToolsCall, objects("name", "b__look")[0],
			`{"content":[{"type":"text","text":"t"},{"type":"resource_link","uri":"out:1"}]}`},
		{"a tool that embeds", mcp.MethodToolsCall, objects("name", "b__look")[0],
			`{"content":[{"type":"resource","resource":{"uri":"out:1","text":""}}]}`},
		{"a prompt", mcp.MethodPromptsGet, objects("name", "b__ask")[0],
			`{"messages":[{"role":"user","content":{"type":"resource_link","uri":"out:1"}}]}`},
		{"a task", mcp.MethodTasksGet, task,
			`{"status":"completed","result":{"content":[{"type":"resource_link","uri":"out:1"}]}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, up := linkers(t, Options{}, tt.result)
			wantFault(t, read(t, d, "out:1"), drawbridge.NotFound, "unknown resource out:1")
			got, err := d.Do(t.Context(), drawbridge.Call{Caller: stateless("ada"), Method: tt.method,
				Params: tt.params})
			if err != nil || string(got.Raw) != tt.result {
				t.Fatalf("the answer is %s, %v, want it as the server sent it", got.Raw, err)
			}
			up.told()
			if err := read(t, d, "out:1"); err != nil {
				t.Error(err)
			}
			wantList(t, up.told(), `b resources/read {"uri":"out:1"}`)
			if err := d.Subscribe(t.Context(), ada, "out:1"); err != nil {
				t.Error(err)
			}
			wantList(t, up.told(), `watch b [out:1]`)
		})
	}
}

// TestALinkIsForThePrincipalWhoGotIt: no one else can tell that it was given, nor can one who may not know of its
// server.
func TestALinkIsForThePrincipalWhoGotIt(t *testing.T) {
	d, _ := linkers(t, Options{}, `{"content":[{"type":"resource_link","uri":"out:1"}]}`)
	if _, err := d.Call(t.Context(), drawbridge.Call{Caller: ada, Params: objects("name", "a__look")[0]}); err != nil {
		t.Fatal(err)
	}
	other, narrow := ada, ada
	other.Principal = "eve"
	narrow.Scopes = []drawbridge.Scope{"mcp:none"}
	for _, caller := range []drawbridge.Caller{other, narrow} {
		_, err := d.Do(t.Context(), drawbridge.Call{Caller: caller, Method: mcp.MethodResourcesRead,
			Params: objects("uri", "out:1")[0]})
		wantFault(t, err, drawbridge.NotFound, "unknown resource out:1")
	}
	if err := d.Configure(t.Context(), []Server{{ID: "b", ConfigHash: "row-b"},
		{ID: "c", ConfigHash: "row-c"}}); err != nil {
		t.Fatal(err)
	}
	enrol(t, d, library("c", nil, nil))
	wantFault(t, read(t, d, "out:1"), drawbridge.NotFound, "unknown resource out:1")
}

// TestALinkYieldsToWhatIsKnown: what a server lists, has a template for or is named by is its own, anyone who links to
// it.
func TestALinkYieldsToWhatIsKnown(t *testing.T) {
	const result = `{"content":[{"type":"resource_link","uri":"listed:b"},{"type":"resource_link","uri":"made:1"},` +
		`{"type":"resource_link","uri":"drawbridge+b:x"},{"type":"resource_link","uri":"out:1"}]}`
	d, up := linkers(t, Options{}, result)
	call := func(name, want string) {
		t.Helper()
		got, err := d.Call(t.Context(), drawbridge.Call{Caller: ada, Params: objects("name", name)[0]})
		if err != nil || string(got.Raw) != want {
			t.Errorf("%s returns %s, %v\nwant %s", name, got.Raw, err, want)
		}
	}
	call("a__look", result)
	// An unlisted URI belongs to the server that links to it first. Links of another server get its name in the URI.
	call("b__look", `{"content":[{"type":"resource_link","uri":"listed:b"},{"type":"resource_link","uri":"drawbridge+b:made:1"},`+
		`{"type":"resource_link","uri":"drawbridge+b:x"},{"type":"resource_link","uri":"drawbridge+b:out:1"}]}`)
	up.told()
	for _, uri := range []string{"listed:b", "made:1", "drawbridge+b:x", "out:1", "drawbridge+b:out:1"} {
		if err := read(t, d, uri); err != nil {
			t.Errorf("%s: %v", uri, err)
		}
	}
	wantList(t, up.told(), `a resources/read {"uri":"listed:b"}`, `b resources/read {"uri":"made:1"}`,
		`b resources/read {"uri":"x"}`,
		`a resources/read {"uri":"out:1"}`, `b resources/read {"uri":"out:1"}`)

	d, _ = linkers(t, Options{Naming: BareNames}, `{"content":[{"type":"resource_link","uri":"out:1"}]}`)
	for _, name := range []string{"a__look", "b__look"} {
		call(name, `{"content":[{"type":"resource_link","uri":"out:1"}]}`)
	}
}
