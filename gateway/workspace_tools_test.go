//go:build !nomcp

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/flow"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// TestAWaitingRevisionIsShownWhole: a person who decides about a long text sees all of it, and its sources.
func TestAWaitingRevisionIsShownWhole(t *testing.T) {
	l := openLibrary(t)
	person, helper := l.person(), l.agent("r1")
	l.does(person, "page_create", arguments{"title": "Source", "text": "A fact.\n"})
	made := l.does(person, "page_create", arguments{"title": "Plan", "text": "First the tests.\n"})
	source := rawjson.GetString(l.does(helper, "page_read", arguments{"page": "source"}), "page", "id")
	text := strings.Repeat("A line of a long proposal.\n", 2000) + "The middle.\n" + strings.Repeat("And more lines of it.\n", 2000)
	waits := l.does(helper, "page_update", arguments{"page": "plan", "slot": "b1", "text": text})
	if string(rawjson.Get(waits, "receipt", "waiting")) != "true" {
		t.Fatalf("the receipt is %s", waits)
	}
	revision := rawjson.GetString(waits, "receipt", "revision")
	diff := rawjson.GetString(l.does(person, "page_diff", arguments{"revision": revision}), "diff")
	if !strings.Contains(diff, "-First the tests.\n") || !strings.Contains(diff, "+The middle.\n") {
		t.Errorf("the diff has %d bytes", len(diff))
	}
	links := l.does(person, "page_links", arguments{"revision": revision})
	if got := string(rawjson.Get(links, "links", "sources")); got != fmt.Sprintf("[%q]", source) {
		t.Errorf("the sources are %s, want %s", got, source)
	}
	if _, err := l.call(person, "page_links", arguments{"revision": revision, "page": rawjson.GetString(made, "receipt", "page")}); err == nil {
		t.Error("a page and a revision are both taken")
	}
}

// TestPagesAreListedWithThoseBelow lists a tree of pages in one call, and in parts.
func TestPagesAreListedWithThoseBelow(t *testing.T) {
	l := openLibrary(t)
	person := l.person()
	for _, p := range []arguments{{"title": "B"}, {"title": "A", "folder": true}, {"title": "A2", "parent": "a"},
		{"title": "A1", "parent": "a"}, {"title": "Deep", "parent": "a1"}} {
		l.does(person, "page_create", p)
	}
	slugs := func(a arguments) (all []string) {
		for page := range rawjson.Elements(rawjson.Get(l.does(person, "page_list", a), "pages")) {
			all = append(all, rawjson.GetString(page, "slug"))
		}
		return all
	}
	for _, test := range []struct {
		arguments arguments
		want      []string
	}{
		{arguments{}, []string{"a", "b"}},
		{arguments{"deep": true}, []string{"a", "a1", "deep", "a2", "b"}},
		{arguments{"deep": true, "offset": 3}, []string{"a2", "b"}},
		{arguments{"deep": true, "parent": "a1"}, []string{"deep"}},
	} {
		if diff := cmp.Diff(test.want, slugs(test.arguments)); diff != "" {
			t.Errorf("%v: %s", test.arguments, diff)
		}
	}
}

// A progressPeer keeps the progress that a call sends, and ends the call at a message.
type progressPeer struct {
	messages []string
	stopAt   string
	stop     context.CancelFunc
}

func (p *progressPeer) Notify(_ context.Context, method string, params json.RawMessage) error {
	if method == mcp.NoteProgress {
		p.messages = append(p.messages, rawjson.GetString(params, "message"))
		if rawjson.GetString(params, "message") == p.stopAt {
			p.stop()
		}
	}
	return nil
}

func (p *progressPeer) Request(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, errors.New("not asked")
}

// TestPrivatePagesInAllForms: a run that reads a revision of a private page has read private text.
func TestPrivatePagesInAllForms(t *testing.T) {
	l := openLibraryWith(t, Config{Flow: &config.FlowSettings{PrivatePages: []string{"board *"}}})
	made := l.does(l.person(), "page_create", arguments{"title": "Board Minutes", "text": "Ana earns 90211"})
	revision := rawjson.GetString(made, "receipt", "revision")
	for i, read := range []func(c drawbridge.Caller){
		func(c drawbridge.Caller) { l.does(c, "page_read", arguments{"page": "board-minutes"}) },
		func(c drawbridge.Caller) { l.does(c, "page_history", arguments{"page": "board-minutes"}) },
		func(c drawbridge.Caller) { l.does(c, "page_diff", arguments{"revision": revision}) },
	} {
		caller := l.AgentTools(fmt.Sprint("thread", i), AgentOptions{}).callerOf(agent.Identity{Session: "r", Mode: agent.Bypass})
		read(caller)
		if label, _, err := l.flow.LabelOfRun(t.Context(), caller); err != nil || label.Confidentiality != flow.Private {
			t.Errorf("%d: the run is %s, %v", i, label, err)
		}
	}
}

// TestAnImportLeavesOutPrivateFiles: a page of a private file would not be private. A person may want it.
func TestAnImportLeavesOutPrivateFiles(t *testing.T) {
	l := openLibrary(t)
	dir := t.TempDir()
	writeText(t, filepath.Join(dir, "secrets.md"), "the key is 12\n")
	writeText(t, filepath.Join(dir, "plan.md"), "a plan\n")
	client := l.client("*", "workspace:import")
	client.Dir = dir
	got := string(l.does(client, "workspace_import", arguments{"path": dir}))
	if want := `{"imported":1,"known":0,"skipped":["secrets.md: it is private, and its page would not be"]}`; got != want {
		t.Errorf("a client gets %s", got)
	}
	if got := string(l.does(l.person(), "workspace_import", arguments{"path": dir})); got != `{"imported":1,"known":1}` {
		t.Errorf("a person gets %s", got)
	}
}

// TestAnImportGoesOn imports a folder, is interrupted, and goes on; then it exports the same files.
func TestAnImportGoesOn(t *testing.T) {
	l := openLibrary(t)
	dir := t.TempDir()
	files := map[string]string{"crlf.md": "# T\r\n\r\ntext\r\n", "front.md": "---\na: b\n---\n\n# F\n", "empty.md": "", "end.md": "no newline",
		"a/same.md": "one\n", "b/same.md": "two\n", "b/folder.md/in.md": "below a folder with a dot\n", "b/UPPER.MD": "x\n\n\n y\n"}
	for i := range 400 {
		files[fmt.Sprintf("many/%03d.md", i)] = fmt.Sprintf("file %d\n", i)
	}
	for name, text := range files {
		writeText(t, filepath.Join(dir, "in", name), text)
	}
	run := func(ctx context.Context, peer drawbridge.Peer) (drawbridge.Result, error) {
		return l.Deck().Call(ctx, drawbridge.Call{Caller: l.person(), Method: mcp.MethodToolsCall, Peer: peer, Params: json.RawMessage(
			fmt.Sprintf(`{"name":"workspace_import","arguments":{"path":%q},"_meta":{"progressToken":"p"}}`, filepath.Join(dir, "in")))})
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := run(ctx, &progressPeer{stopAt: "200 of 408 files", stop: cancel}); err == nil {
		t.Fatal("the import was not interrupted")
	}
	peer := &progressPeer{}
	result, err := run(t.Context(), peer)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(rawjson.Get(result.Raw, "structuredContent")); got != `{"imported":208,"known":200}` {
		t.Errorf("the second import: %s", got)
	}
	if !slices.Contains(peer.messages, "50 of 408 files") || !slices.Contains(peer.messages, "408 of 408 files") {
		t.Errorf("its progress: %q", peer.messages)
	}
	l.does(l.person(), "workspace_export", arguments{"path": filepath.Join(dir, "out")})
	got := map[string]string{}
	if err := filepath.WalkDir(filepath.Join(dir, "out"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(filepath.Join(dir, "out"), path)
		got[filepath.ToSlash(name)] = string(text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(files, got); diff != "" {
		t.Error(diff)
	}
}

func writeText(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestANewWorkspaceIsAnotherConfiguration: a gateway that was opened without a workspace does not serve those who have
// one, and what was opened since has it.
func TestANewWorkspaceIsAnotherConfiguration(t *testing.T) {
	state := t.TempDir()
	c := Config{Dir: t.TempDir(), Store: filepath.Join(state, "drawbridge.db"), LookupEnv: func(name string) (string, bool) {
		v, ok := map[string]string{"HOME": state, "XDG_STATE_HOME": state, "DRAWBRIDGE_KEYCHAIN": "off"}[name]
		return v, ok
	}}
	shared, err := OpenShared(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	load := func() (key string, has bool) {
		t.Helper()
		loaded, err := shared.LoadConfig(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		g, err := loaded.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		if key, err = loaded.Fingerprint(); err != nil {
			t.Fatal(err)
		}
		if g.HasWorkspace() != loaded.HasWorkspace() {
			t.Errorf("the gateway has a workspace: %v, its configuration: %v", g.HasWorkspace(), loaded.HasWorkspace())
		}
		return key, g.HasWorkspace()
	}
	before, has := load()
	if same, _ := load(); has || same != before {
		t.Errorf("without a workspace: %v, the same fingerprint: %v", has, same == before)
	}
	want := NewWorkspace{Location: filepath.Join(state, "drawbridge", "workspace.db"), Created: true}
	for range 2 {
		made, err := CreateWorkspace(t.Context(), c)
		if err != nil || made != want {
			t.Fatalf("made %+v, %v, want %+v", made, err, want)
		}
		want.Created = false
	}
	after, has := load()
	if same, _ := load(); !has || after == before || same != after {
		t.Errorf("with a workspace: %v, another fingerprint: %v, and it stays: %v", has, after != before, same == after)
	}
}

// TestReloadOpensANewWorkspace: a gateway that was opened without a workspace has its tools after a reload, and keeps those
// of the person from others.
func TestReloadOpensANewWorkspace(t *testing.T) {
	state := t.TempDir()
	c := Config{Dir: t.TempDir(), LookupEnv: func(name string) (string, bool) {
		v, ok := map[string]string{"HOME": state, "XDG_STATE_HOME": state, "DRAWBRIDGE_KEYCHAIN": "off"}[name]
		return v, ok
	}}
	l := library{open(t, c), t}
	lists := func(c drawbridge.Caller) (all []string) {
		for _, spec := range l.Deck().Cards(c) {
			all = append(all, string(spec.Name))
		}
		return all
	}
	if all := lists(l.person()); slices.Contains(all, "page_read") {
		t.Errorf("before: %q", all)
	}
	if _, err := CreateWorkspace(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := l.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	l.does(l.person(), "page_create", arguments{"title": "Plan"})
	if named := l.does(l.client("*"), "drawbridge_workspace", arguments{}); rawjson.GetString(named, "workspace", "name") != "workspace.db" {
		t.Errorf("the workspace is %s", named)
	}
	person, client := lists(l.person()), lists(l.client("*"))
	if !slices.Contains(person, "review_promote") || !slices.Contains(client, "page_create") || slices.Contains(client, "review_promote") {
		t.Errorf("the person has %q, a client %q", person, client)
	}
	if _, err := l.call(l.client("*"), "review_promote", arguments{"revision": "x"}); err == nil {
		t.Error("a client promotes")
	}
}

// TestTheWorkspaceIsOurFile: no tool is led to the file of the workspace, wherever it is, and its permissions are checked.
func TestTheWorkspaceIsOurFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pages.db")
	none := func(string) (string, bool) { return "", false }
	s := config.Settings{WorkspacePath: file}
	if o := collectOwnFiles(Config{LookupEnv: none}, config.Configuration{Settings: s}); !slices.Contains(o.Prefixes, file) {
		t.Errorf("the prefixes are %q", o.Prefixes)
	}
	writeText(t, file, "")
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if found := CheckStateFiles(Config{LookupEnv: none}, s); len(found) != 1 || found[0].Path != file {
		t.Errorf("the insecure files are %v", found)
	}
}
