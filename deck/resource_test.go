package deck

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/google/go-cmp/cmp"
)

// library is a listing of a server with resources and templates.
func library(server string, uris, templates []string) drawbridge.Listing {
	l := listing(server)
	l.Resources, l.Templates = objects("uri", uris...), objects("uriTemplate", templates...)
	l.Capabilities = json.RawMessage(`{"resources":{}}`)
	return l
}

func read(t testing.TB, d *Deck, uri string) error {
	t.Helper()
	_, err := d.Do(t.Context(), drawbridge.Call{Caller: ada, Method: mcp.MethodResourcesRead,
		Params: objects("uri", uri)[0]})
	return err
}

func TestAResourceIsReadFromTheServerThatHasIt(t *testing.T) {
	up := &fake{}
	d := open(t, up, Options{},
		library("a", []string{"doc://1", "same://x"}, []string{"doc://{id}", "db://{table}/{row}"}),
		library("b", []string{"doc://2", "same://x", "ui://b/app"}, []string{"doc://{id}", "db://users/{row}",
			"any://{+rest}"}),
		library("c", []string{"ui://b/app"}, nil),
	)
	wantList(t, listed(t, d, ada, resources), "doc://1", "same://x", "doc://2", "drawbridge+b:same://x", "ui://b/app",
		"ui://drawbridge+c/b/app")
	wantList(t, listed(t, d, ada, templates), "doc://{id}", "db://{table}/{row}", "drawbridge+b:doc://{id}",
		"db://users/{row}", "any://{+rest}")
	for _, tt := range []struct{ uri, want string }{
		{"doc://1", "a doc://1"},
		{"doc://2", "b doc://2"},                // listed by b, before a's template
		{"doc://3", "a doc://3"},                // a template of both: the first
		{"same://x", "a same://x"},              // a clash: the first
		{"drawbridge+b:same://x", "b same://x"}, // and the other by its server
		{"drawbridge+b:doc://9", "b doc://9"},   // an expansion of the qualified template
		{"db://users/7", "b db://users/7"},      // the closer template
		{"db://orders/7", "a db://orders/7"},    // the only template
		{"any://x/y?z", "b any://x/y?z"},        // a template across slashes
		{"ui://b/app", "b ui://b/app"},
		{"ui://drawbridge+c/b/app", "c ui://b/app"}, // a scheme that keeps its place
		{"drawbridge+c:ui://b/app", "c ui://b/app"},
		{"ui://drawbridge+c/other", "c ui://other"}, // and what is not listed, by its server
	} {
		if err := read(t, d, tt.uri); err != nil {
			t.Errorf("%s: %v", tt.uri, err)
			continue
		}
		got := up.told()[0]
		var server, method string
		var params json.RawMessage
		if _, err := fmt.Sscan(got, &server, &method, &params); err != nil {
			t.Fatal(err)
		}
		if got := server + " " + rawjson.GetString(params, "uri"); got != tt.want {
			t.Errorf("%s is read as %q, want %q", tt.uri, got, tt.want)
		}
	}
	wantFault(t, read(t, d, "nobody://x"), drawbridge.NotFound, "unknown resource nobody://x")
	wantFault(t, read(t, d, "drawbridge+z:doc://1"), drawbridge.NotFound, "unknown resource drawbridge+z:doc://1")
	want := []NameClash{{Kind: "resource", Name: "ui://b/app", Winner: "b", Tool: "ui://b/app",
		Listed: "ui://drawbridge+c/b/app"}}
	if diff := cmp.Diff(want, d.ServerSummaries()[2].Clashes); diff != "" {
		t.Errorf("clashes (-want +got):\n%s", diff)
	}
}

func TestBareNamesLeaveURIsAlone(t *testing.T) {
	d := open(t, &fake{}, Options{Naming: BareNames}, library("a", []string{"x://1"}, nil),
		library("b", []string{"x://1", "x://2"}, nil))
	wantList(t, listed(t, d, ada, resources), "x://1", "x://2")
	want := []OmittedItem{{Kind: "resource", Name: "x://1", Reason: "another server has its name"}}
	if diff := cmp.Diff(want, d.ServerSummaries()[1].Omitted); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
}

func TestTheOnlyServerWithResourcesIsAskedForWhatItDoesNotList(t *testing.T) {
	up := &fake{}
	d := open(t, up, Options{}, listing("a", "tool"), library("b", nil, nil))
	if err := read(t, d, "hidden://x"); err != nil {
		t.Fatal(err)
	}
	wantList(t, up.told(), `b resources/read {"uri":"hidden://x"}`)
	d = open(t, up, Options{}, library("a", nil, nil), library("b", nil, nil))
	wantFault(t, read(t, d, "hidden://x"), drawbridge.NotFound, "unknown resource hidden://x")
}

func TestPromptsAndCompletionsAreRenamedOnTheWay(t *testing.T) {
	up := &fake{}
	a, b := library("a", []string{"r://1"}, []string{"t://{x}"}), library("b", []string{"r://1"}, []string{"t://{x}"})
	a.Prompts, b.Prompts = objects("name", "ask"), objects("name", "ask me")
	d := open(t, up, Options{}, a, b)
	wantList(t, listed(t, d, ada, prompts), "a__ask", "b__ask_me_53533c")
	for _, c := range []struct{ method, params string }{
		{mcp.MethodPromptsGet, `{"arguments":{"n":"1"},"name":"b__ask_me_53533c"}`},
		{mcp.MethodPromptsGet, `{"name":"ask me"}`},
		{mcp.MethodComplete, `{"ref":{"type":"ref/prompt","name":"a__ask"},"argument":{"name":"x","value":""}}`},
		{mcp.MethodComplete, `{"ref":{"type":"ref/resource","uri":"t://{x}"}}`},
		{mcp.MethodComplete, `{"ref":{"type":"ref/resource","uri":"drawbridge+b:t://{x}"}}`},
		{mcp.MethodComplete, `{"ref":{"uri":"drawbridge+b:r://1","type":"ref/resource"}}`},
	} {
		if _, err := d.Do(t.Context(), drawbridge.Call{Caller: ada, Method: c.method,
			Params: json.RawMessage(c.params)}); err != nil {
			t.Errorf("%s: %v", c.params, err)
		}
	}
	wantList(t, up.told(),
		`b prompts/get {"arguments":{"n":"1"},"name":"ask me"}`,
		`b prompts/get {"name":"ask me"}`,
		`a completion/complete {"ref":{"type":"ref/prompt","name":"ask"},"argument":{"name":"x","value":""}}`,
		`a completion/complete {"ref":{"type":"ref/resource","uri":"t://{x}"}}`,
		`b completion/complete {"ref":{"type":"ref/resource","uri":"t://{x}"}}`,
		`b completion/complete {"ref":{"uri":"r://1","type":"ref/resource"}}`,
	)
}

func TestARequestStateGoesOutSealedAndComesBackOpen(t *testing.T) {
	up := &fake{}
	up.answer = func(_ drawbridge.ServerID, c drawbridge.Call) (drawbridge.Result, error) {
		if rawjson.Get(c.Params, "inputResponses") != nil {
			return drawbridge.Result{Raw: json.RawMessage(`{"content":[],"requestState":null}`)}, nil
		}
		return drawbridge.Result{Raw: json.RawMessage(
			`{"resultType":"input_required","requestState":"server's own","inputRequests":{"q":{}}}`)}, nil
	}
	d := open(t, up, Options{SealKeys: [][]byte{[]byte("shared")}}, listing("a", "x", "y"))
	first, err := d.Call(t.Context(), drawbridge.Call{Caller: ada,
		Params: json.RawMessage(`{"name":"a__x","arguments":{"n":1}}`)})
	if err != nil {
		t.Fatal(err)
	}
	state := rawjson.Get(first.Raw, "requestState")
	if want := `{"resultType":"input_required","requestState":` + string(state) +
		`,"inputRequests":{"q":{}}}`; string(first.Raw) != want {
		t.Errorf("result %s, want %s", first.Raw, want)
	}
	if rawjson.GetString(first.Raw, "requestState") == "server's own" {
		t.Error("the state goes out as the server sent it")
	}
	up.told()

	retry := func(d *Deck, caller drawbridge.Caller, name string, state json.RawMessage) (drawbridge.Result, error) {
		params := rawjson.Apply(json.RawMessage(`{"arguments":{ "n":1},"inputResponses":{"q":{}}}`),
			rawjson.Put(rawjson.Quote(name), "name"), rawjson.Put(state, "requestState"))
		return d.Call(t.Context(), drawbridge.Call{Caller: caller, Params: params})
	}
	// Another process of the same store, and another of the card's names: the retry reaches the same tool.
	other := open(t, up, Options{SealKeys: [][]byte{[]byte("shared")}}, listing("a", "x", "y"))
	for _, d := range []*Deck{d, other} {
		last, err := retry(d, ada, "mcp_a_x", state)
		if err != nil || string(last.Raw) != `{"content":[],"requestState":null}` {
			t.Errorf("the retry returns %s, %v", last.Raw, err)
		}
	}
	sent := `a tools/call {"arguments":{ "n":1},"inputResponses":{"q":{}},"name":"x","requestState":"server's own"}`
	wantList(t, up.told(), sent, sent)

	mallory := ada
	mallory.Principal = "mallory"
	const foreign = "tools/call: requestState: it was not given out for this request"
	for what, err := range map[string]error{
		"another principal": second(retry(d, mallory, "a__x", state)),
		"another tool":      second(retry(d, ada, "a__y", state)),
		"the bare state":    second(retry(d, ada, "a__x", json.RawMessage(`"server's own"`))),
		"no text":           second(retry(d, ada, "a__x", json.RawMessage(`7`))),
	} {
		t.Log(what)
		wantFault(t, err, drawbridge.InvalidInput, foreign)
	}
	wantList(t, up.told())
}

func second[T any](_ T, err error) error { return err }

func TestLinksOfAServerLeadToItsOwnResources(t *testing.T) {
	const (
		content = `[{"type":"resource_link","uri":"same://x","name":"n"},{"type":"text","text":"same://x"},` +
			`{"type":"resource","resource":{"uri":"same://x","text":""}},{"type":"resource_link","uri":"doc://2","size":1.0}]`
		theirs = `[{"type":"resource_link","uri":"drawbridge+b:same://x","name":"n"},{"type":"text","text":"same://x"},` +
			`{"type":"resource","resource":{"uri":"drawbridge+b:same://x","text":""}},{"type":"resource_link","uri":"doc://2","size":1.0}]`
		message = `{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"same://x"}}},{"role":"user","content":{"type":"text","text":"t"}}]}`
	)
	up := &fake{answer: func(_ drawbridge.ServerID, c drawbridge.Call) (drawbridge.Result, error) {
		if c.Method == mcp.MethodPromptsGet {
			return drawbridge.Result{Raw: json.RawMessage(message)}, nil
		}
		return drawbridge.Result{Raw: json.RawMessage(`{"content":` + content +
			`,"structuredContent":{"uri":"same://x"}}`)}, nil
	}}
	a, b := library("a", []string{"same://x"}, nil), library("b", []string{"same://x", "doc://2"}, nil)
	a.Tools, b.Tools = []json.RawMessage{tool("look")}, []json.RawMessage{tool("look")}
	a.Prompts, b.Prompts = objects("name", "ask"), objects("name", "ask")
	d := open(t, up, Options{}, a, b)
	for _, tt := range []struct{ method, name, want string }{
		{mcp.MethodToolsCall, "a__look", `{"content":` + content + `,"structuredContent":{"uri":"same://x"}}`},
		{mcp.MethodToolsCall, "b__look", `{"content":` + theirs + `,"structuredContent":{"uri":"same://x"}}`},
		{mcp.MethodPromptsGet, "a__ask", message},
		{mcp.MethodPromptsGet, "b__ask", strings.Replace(message, "same://x", "drawbridge+b:same://x", 1)},
	} {
		result, err := d.Do(t.Context(), drawbridge.Call{Caller: ada, Method: tt.method,
			Params: objects("name", tt.name)[0]})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, string(result.Raw)); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tt.method, tt.name, diff)
		}
	}
}

// FuzzLinks goes through results of any kind: what comes out is JSON, and the same bytes where no URI is to be changed.
func FuzzLinks(f *testing.F) {
	f.Add(`{"content":[{"type":"resource_link","uri":"same://x"},{"type":"resource","resource":{"uri":"same://x"}}]}`)
	f.Add(`{"messages":[{"content":{"type":"resource","resource":{"uri":"same://x"}}}],"contents":[ 1 ]}`)
	f.Add(`{"content":{"type":7},"messages":[[]],"content":[{"type":"resource","resource":[]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		result := json.RawMessage(text)
		if rawjson.Valid(result) != nil {
			t.Skip()
		}
		fresh := func() *Deck {
			return open(t, &fake{}, Options{}, library("a", []string{"same://x"}, nil),
				library("b", []string{"same://x"}, nil))
		}
		for _, method := range []string{mcp.MethodToolsCall, mcp.MethodPromptsGet, mcp.MethodResourcesRead} {
			got := fresh().rewriteLinks(ada, method, "b", result)
			if err := rawjson.Valid(got); err != nil {
				t.Errorf("%s: %s becomes %s: %v", method, text, got, err)
			}
			if !strings.Contains(text, "same") && !strings.Contains(text, `\`) && string(got) != text {
				t.Errorf("%s: %s becomes %s", method, text, got)
			}
			if got := fresh().rewriteLinks(ada, method, "a", result); string(got) != text {
				t.Errorf("%s: of the first server %s becomes %s", method, text, got)
			}
		}
	})
}
