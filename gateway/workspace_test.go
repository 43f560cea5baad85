//go:build !nomcp

package gateway

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/boundary"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// A library is a gateway with an open workspace.
type library struct {
	*Gateway
	t *testing.T
}

func openLibrary(t *testing.T) library {
	t.Helper()
	return openLibraryWith(t, Config{})
}

// openLibraryWith opens a library whose gateway has a configuration, apart from the directories.
func openLibraryWith(t *testing.T, c Config) library {
	t.Helper()
	state := t.TempDir()
	location := filepath.Join(state, "drawbridge", "workspace.db")
	w, err := store.OpenWorkspace(t.Context(), location, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	c.Dir, c.LookupEnv = t.TempDir(), func(name string) (string, bool) {
		v, ok := map[string]string{"HOME": state, "XDG_STATE_HOME": state, "DRAWBRIDGE_KEYCHAIN": "off"}[name]
		return v, ok
	}
	return library{open(t, c), t}
}

// The callers of the tests: the person at the command line, an agent in a run, and an outside client with scopes.
func (l library) person() drawbridge.Caller {
	c := l.Owner()
	c.Kind = drawbridge.Author
	return boundary.Prove(c)
}

func (l library) agent(run string) drawbridge.Caller {
	return l.AgentTools("thread", AgentOptions{}).callerOf(agent.Identity{Session: run, Mode: agent.Bypass})
}

func (l library) client(scopes ...drawbridge.Scope) drawbridge.Caller {
	c := l.Owner()
	c.Principal, c.Scopes = "client:notes", scopes
	return c
}

// call calls a tool, and returns the structured content of its result.
func (l library) call(c drawbridge.Caller, name string, arguments any) (json.RawMessage, error) {
	l.t.Helper()
	text, err := json.Marshal(arguments)
	if err != nil {
		l.t.Fatal(err)
	}
	result, err := l.Deck().Call(l.t.Context(), drawbridge.Call{Caller: c, Method: mcp.MethodToolsCall,
		Params: rawjson.Apply(nil, rawjson.Put(rawjson.Quote(name), "name"), rawjson.Put(text, "arguments"))})
	if err != nil {
		return nil, err
	}
	if rawjson.Get(result.Raw, "isError") != nil {
		return result.Raw, &drawbridge.Fault{Code: drawbridge.InvalidInput, Err: errors.New("the tool refused"), Step: string(result.Raw)}
	}
	return rawjson.Get(result.Raw, "structuredContent"), nil
}

func (l library) does(c drawbridge.Caller, name string, arguments any) json.RawMessage {
	l.t.Helper()
	result, err := l.call(c, name, arguments)
	if err != nil {
		l.t.Fatalf("%s %v: %v", name, arguments, err)
	}
	return result
}

type arguments map[string]any

// TestWorkedExample is the example of the design: an agent reads three pages and writes a summary, a source changes, and
// the person accepts the summary.
func TestWorkedExample(t *testing.T) {
	l := openLibrary(t)
	person, helper := l.person(), l.agent("r1")
	for _, title := range []string{"One", "Two", "Three"} {
		l.does(person, "page_create", arguments{"title": title, "text": "A fact.\n"})
	}
	for _, slug := range []string{"one", "two", "three"} {
		l.does(helper, "page_read", arguments{"page": slug})
	}
	if b, err := l.AgentTools("thread", AgentOptions{}).Brief(t.Context(), agent.Identity{Session: "r1"}, false); err != nil || len(b.Notes) != 1 ||
		!strings.Contains(b.Notes[0], "workspace.db is open") {
		t.Errorf("the briefing is %+v, %v", b, err)
	}
	made := l.does(helper, "page_create", arguments{"title": "Summary", "text": "Three facts.\n"})
	page := l.does(person, "page_read", arguments{"page": "summary"})
	for member, want := range map[string]string{"origin": "agent-produced", "lifecycle": "candidate", "thread": "thread", "run": "r1"} {
		if got := rawjson.GetString(page, "page", member); got != want {
			t.Errorf("%s is %q, want %q", member, got, want)
		}
	}
	links := l.does(person, "page_links", arguments{"page": "summary"})
	if n := strings.Count(string(rawjson.Get(links, "links", "sources")), ","); n != 2 {
		t.Errorf("the sources are %s", rawjson.Get(links, "links", "sources"))
	}
	changed := l.does(person, "page_update", arguments{"page": "two", "slot": "b1", "text": "Another fact.\n"})
	if string(rawjson.Get(changed, "receipt", "flagged")) != "1" {
		t.Errorf("the change of a source: %s", changed)
	}
	flags := l.does(person, "review_list", arguments{"kind": "flags"})
	if !strings.Contains(string(flags), rawjson.GetString(made, "receipt", "page")) {
		t.Errorf("the flags are %s", flags)
	}
	l.does(person, "review_revalidate", arguments{"entity": rawjson.GetString(made, "receipt", "page")})
	l.does(person, "review_promote", arguments{"revision": rawjson.GetString(made, "receipt", "revision")})
	page = l.does(person, "page_read", arguments{"page": "summary"})
	if got := rawjson.GetString(page, "page", "lifecycle"); got != "canonical" {
		t.Errorf("after the promotion it is %s", got)
	}
}

// TestResourcesOfAWorkspace reads pages and memory as resources, and is told when they change.
func TestResourcesOfAWorkspace(t *testing.T) {
	l := openLibrary(t)
	made := l.does(l.person(), "page_create", arguments{"title": "Plan", "text": "the plan\n"})
	reader, stranger := l.client("workspace:read", "workspace:memory"), l.client("mcp:x")
	reader.Session = "s"
	list, err := l.Deck().List(t.Context(), reader, mcp.MethodTemplatesList)
	if err != nil || len(list.Items) != 3 {
		t.Errorf("the templates are %s, %v", list.Items, err)
	}
	if list, err := l.Deck().List(t.Context(), stranger, mcp.MethodTemplatesList); err != nil || len(list.Items) != 0 {
		t.Errorf("a stranger sees the templates %s, %v", list.Items, err)
	}
	if caps := l.Deck().Capabilities(reader); string(rawjson.Get(caps, "resources", "subscribe")) != "true" {
		t.Errorf("the capabilities are %s", caps)
	}
	read := func(c drawbridge.Caller, uri string) (string, error) {
		result, err := l.Deck().Do(t.Context(), drawbridge.Call{Caller: c, Method: mcp.MethodResourcesRead,
			Params: rawjson.Apply(nil, rawjson.Put(rawjson.Quote(uri), "uri"))})
		for content := range rawjson.Elements(rawjson.Get(result.Raw, "contents")) {
			return rawjson.GetString(content, "text"), err
		}
		return "", err
	}
	const uri = "drawbridge://page/plan"
	for _, name := range []string{uri, "drawbridge://page/" + rawjson.GetString(made, "receipt", "page")} {
		if text, err := read(reader, name); err != nil || !strings.Contains(text, "\nthe plan\n") {
			t.Errorf("%s is %q, %v", name, text, err)
		}
	}
	for _, name := range []string{"drawbridge://page/none", "drawbridge://memory/none", "drawbridge://page/"} {
		if _, err := read(reader, name); err == nil {
			t.Errorf("%s was read", name)
		}
	}
	if _, err := read(stranger, uri); !isCode(err, drawbridge.NotFound) {
		t.Errorf("a stranger has read the page: %v", err)
	}
	told := make(chan string, 10)
	defer l.Deck().OnEvent(func(e deck.Event) {
		if e.Kind == deck.ResourceUpdated && e.VisibleTo(reader) {
			told <- e.URI
		}
	})()
	l.does(l.person(), "page_update", arguments{"page": "plan", "slot": "b1", "text": "nobody listens\n"})
	if err := l.Deck().Subscribe(t.Context(), reader, uri, "drawbridge://memory/workspace"); err != nil {
		t.Fatal(err)
	}
	l.does(l.person(), "page_update", arguments{"page": "plan", "slot": "b1", "text": "another plan\n"})
	l.does(l.person(), "memory_write", arguments{"tier": "workspace", "name": "style", "text": "short"})
	heard := map[string]bool{}
	for range 4 { // each entity has two URIs
		heard[<-told] = true
	}
	if !heard[uri] || !heard["drawbridge://memory/workspace"] {
		t.Errorf("the events are %v", heard)
	}
	if text, err := read(reader, "drawbridge://memory/workspace"); err != nil || !strings.Contains(text, "short") {
		t.Errorf("the memory is %q, %v", text, err)
	}
	l.Deck().EndSession(reader)
}

// TestAnotherGatewayMountsTheWorkspace: to the workspace, the other gateway is an outside client.
func TestAnotherGatewayMountsTheWorkspace(t *testing.T) {
	l := openLibrary(t)
	door := httptest.NewServer(l.Server().Handler())
	t.Cleanup(func() { // after the other gateway has ended
		door.CloseClientConnections()
		door.Close()
	})
	other := library{open(t, Config{Servers: []config.Server{{ID: "notes", URL: door.URL + "/mcp"}}}), t}
	loaded(t, other.Gateway)
	other.does(other.Owner(), "notes__page_create", arguments{"title": "From afar", "text": "text\n"})
	page := rawjson.Get(l.does(l.person(), "page_read", arguments{"page": "from-afar"}), "page")
	if rawjson.GetString(page, "origin") != "agent-produced" || rawjson.GetString(page, "lifecycle") != "candidate" {
		t.Errorf("the page is %s", page)
	}
	if _, err := other.call(other.Owner(), "notes__review_promote", arguments{"revision": rawjson.GetString(page, "revision")}); err == nil {
		t.Error("the other gateway has promoted its page")
	}
}

// TestFoldersOfMarkdown imports a folder, twice, and exports it unchanged.
func TestFoldersOfMarkdown(t *testing.T) {
	l := openLibrary(t)
	from, to := filepath.Join(l.config.Dir, "notes"), filepath.Join(l.config.Dir, "export")
	files := map[string]string{
		"README.md":              "# Notes\r\n\r\nwith CRLF\r\n",
		"Plan.md":                "---\ntags: [a]\n---\n\n# The plan\n\nSee [[other]].\n\n```\ncode\n\nmore\n```\n\n\nlast",
		"guides/README.md":       "guide\n",
		"guides/deep/Other.md":   "no end of line",
		"guides/deep/empty.md":   "",
		"guides/deep/Ünïcode.md": "ü\n",
		"plan.MD":                "another plan\n",
	}
	for name, text := range files {
		path := filepath.Join(from, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(from, "bad.md"), []byte("\xff"), 0o600); err != nil {
		t.Fatal(err)
	}
	done := l.does(l.person(), "workspace_import", arguments{"path": from})
	if string(rawjson.Get(done, "imported")) != "7" || !strings.Contains(string(rawjson.Get(done, "skipped")), "bad.md") {
		t.Errorf("the import: %s", done)
	}
	again := l.does(l.person(), "workspace_import", arguments{"path": from})
	if string(rawjson.Get(again, "imported")) != "0" || string(rawjson.Get(again, "known")) != "7" {
		t.Errorf("the second import: %s", again)
	}
	page := rawjson.Get(l.does(l.person(), "page_read", arguments{"page": "other"}), "page")
	if rawjson.GetString(page, "origin") != "imported" || rawjson.GetString(page, "lifecycle") != "draft" {
		t.Errorf("the page is %s", page)
	}
	if links := string(rawjson.Get(l.does(l.person(), "page_links", arguments{"page": "other"}), "links", "backlinks")); !strings.Contains(links, "The plan") {
		t.Errorf("the links to the page are %s", links)
	}
	l.does(l.person(), "workspace_export", arguments{"path": to})
	for name, text := range files {
		if got, err := os.ReadFile(filepath.Join(to, filepath.FromSlash(name))); err != nil || string(got) != text {
			t.Errorf("%s is %q, %v; want %q", name, got, err, text)
		}
	}
	err := filepath.WalkDir(to, func(path string, e os.DirEntry, err error) error {
		if rel, _ := filepath.Rel(to, path); err == nil && !e.IsDir() {
			if _, ok := files[filepath.ToSlash(rel)]; !ok {
				t.Errorf("the export has %s, too", rel)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestAttachments attaches files to a page, and reads them again.
func TestAttachments(t *testing.T) {
	l := openLibrary(t)
	l.does(l.person(), "page_create", arguments{"title": "Page"})
	for name, kind := range map[string]string{"chart.png": "image/png", "table.csv": "text/csv"} {
		data := base64.StdEncoding.EncodeToString([]byte("bytes of " + name))
		l.does(l.agent("r1"), "page_attach", arguments{"page": "page", "name": name, "type": kind, "data": data})
		result, err := l.Deck().Call(t.Context(), drawbridge.Call{Caller: l.person(), Method: mcp.MethodToolsCall, Params: rawjson.Apply(nil,
			rawjson.Put(rawjson.Quote("page_read"), "name"), rawjson.Put(json.RawMessage(`{"page":"page","attachment":"`+name+`"}`), "arguments"))})
		if err != nil || !strings.Contains(string(result.Raw), data) || !strings.Contains(string(result.Raw), kind) {
			t.Errorf("%s: %s, %v", name, result.Raw, err)
		}
	}
	if _, err := l.call(l.person(), "page_read", arguments{"page": "page", "attachment": "none"}); err == nil {
		t.Error("an attachment that does not exist was read")
	}
}
