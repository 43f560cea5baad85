//go:build !nomcp

package admin_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/boundary"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// A house is the home of a person with a project, and an open gateway on it.
type house struct {
	t             *testing.T
	home, project string
	*gateway.Gateway
	close func()
}

// newHouse makes a home with a workspace and the server "notes".
func newHouse(t *testing.T, server *mcptest.Server) *house {
	t.Helper()
	h := &house{t: t, home: t.TempDir(), project: t.TempDir()}
	dir := filepath.Join(h.home, ".config", "drawbridge")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	h.put(filepath.Join(dir, "drawbridge.toml"), "[deck]\nfetch_hosts = [\"127.0.0.1\"]\n")
	h.put(filepath.Join(dir, "mcp.json"), fmt.Sprintf(`{"servers": {"notes": {"type": "http", "url": %q}}}`, server.URL()))
	if _, err := gateway.CreateWorkspace(t.Context(), h.config()); err != nil {
		t.Fatal(err)
	}
	h.open()
	return h
}

func (h *house) put(path, text string) {
	h.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) lookup(name string) (string, bool) {
	v, ok := map[string]string{"HOME": h.home, "DRAWBRIDGE_KEYCHAIN": "off"}[name]
	return v, ok
}

func (h *house) config() gateway.Config { return gateway.Config{Dir: h.project, LookupEnv: h.lookup} }

// open opens the gateway, after it was closed.
func (h *house) open() {
	h.t.Helper()
	g, err := gateway.Open(h.t.Context(), h.config())
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.t.Context()))
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	var once sync.Once
	h.Gateway, h.close = g, func() {
		once.Do(func() {
			cancel()
			<-done
			if err := g.Close(); err != nil {
				h.t.Error(err)
			}
		})
	}
	h.t.Cleanup(h.close)
}

// restart closes the gateway, and opens it again.
func (h *house) restart() {
	h.t.Helper()
	h.close()
	h.open()
}

func (h *house) service() *admin.Service {
	return admin.New(admin.Options{ConfigOptions: config.Options{Dir: h.project, LookupEnv: h.lookup}, Gateway: h.config()})
}

// agent has an agent of a session call a tool, and returns the result.
func (h *house) agent(session, tool string, arguments map[string]any) json.RawMessage {
	h.t.Helper()
	text, err := json.Marshal(arguments)
	if err != nil {
		h.t.Fatal(err)
	}
	tools := h.AgentTools(session, gateway.AgentOptions{})
	out, err := tools.Call(h.t.Context(), agent.Identity{Session: session, Mode: agent.Bypass},
		drawbridge.ToolCall{ID: "c", Name: drawbridge.CardName(tool), Arguments: text}, func(agent.CallUpdate) {})
	if err != nil || out.Result.IsError() {
		h.t.Fatalf("%s: %v %s", tool, err, out.Result.Raw)
	}
	return out.Result.Raw
}

// person has the person at the command line call a tool.
func (h *house) person(tool string, arguments map[string]any) {
	h.t.Helper()
	text, err := json.Marshal(arguments)
	if err != nil {
		h.t.Fatal(err)
	}
	c := h.Owner()
	c.Kind = drawbridge.Author
	result, err := h.Deck().Call(h.t.Context(), drawbridge.Call{Caller: boundary.Prove(c), Params: rawjson.Apply(nil,
		rawjson.Put(rawjson.Quote(tool), "name"), rawjson.Put(text, "arguments"))})
	if err != nil || result.IsError() {
		h.t.Fatalf("%s: %v %s", tool, err, result.Raw)
	}
}

// prompt writes a session of the agent with a prompt.
func (h *house) prompt(session, text string) {
	h.t.Helper()
	history, err := agent.OpenHistory(filepath.Join(h.home, ".local", "state", "drawbridge", "sessions", "--project--"), session)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := history.Append(h.t.Context(), agent.Entry{Kind: agent.PromptEntry, ID: "1", Time: time.Now(), Run: "r",
		Message: &drawbridge.Message{Role: drawbridge.UserRole, Parts: []drawbridge.MessagePart{{Text: text}}}}); err != nil {
		h.t.Fatal(err)
	}
	if err := history.Append(h.t.Context(), agent.Entry{Kind: agent.ModelEntry, ID: "2", Time: time.Now(), Run: "r",
		Model: "acme/large-1"}); err != nil {
		h.t.Fatal(err)
	}
	if err := history.Close(); err != nil {
		h.t.Fatal(err)
	}
}

func sum(content []byte) string {
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:])
}

// onAnyPath returns a node of a kind below a node; nil if there is none.
func onAnyPath(node *workspace.Why, kind string) *workspace.Why {
	for n := range node.All() {
		if n.Kind == kind && n != node {
			return n
		}
	}
	return nil
}

const article = "<html><head><title>Frogs</title></head><body><article><h1>Frogs</h1><p>Frogs are green.</p></article></body></html>"

// TestWhyOverThreeHops: an agent reads a page of the web and notes memory; another reads the memory and a server, and
// writes a page. The chain is there at once, after a restart, and after an export and an import into another workspace.
func TestWhyOverThreeHops(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(article))
	}))
	defer site.Close()
	server := mcptest.NewServer(t, mcptest.Tool{Name: "read", Answer: mcptest.Text("Frogs jump.")})
	h := newHouse(t, server)
	h.prompt("first", "Learn about frogs.\nQuickly.")
	h.prompt("second", "Write a page about frogs.")
	h.agent("first", "webfetch", map[string]any{"url": site.URL + "/frogs"})
	h.agent("first", "memory_write", map[string]any{"tier": "workspace", "name": "frogs", "text": "Frogs are green."})
	h.agent("second", "memory_read", map[string]any{"tier": "workspace"})
	result := h.agent("second", "notes__read", nil)
	h.agent("second", "page_create", map[string]any{"title": "Frogs", "text": "Green, and they jump.\n"})

	check := func(h *house, when string, root *workspace.Why) {
		t.Helper()
		memory := onAnyPath(root, "memory")
		if memory == nil || memory.Digest != workspace.Digest("Frogs are green.") || memory.Written.Thread != "first" || memory.Written.Tool != "memory_write" {
			t.Fatalf("%s: the memory: %+v", when, memory)
		}
		web := onAnyPath(memory, workspace.WebSource)
		if web == nil || web.Name != site.URL+"/frogs" || web.Digest != sum([]byte(article)) || web.Call == "" {
			t.Errorf("%s: the web page: %+v", when, web)
		}
		answer := onAnyPath(root, workspace.ResultSource)
		if answer == nil || answer.Name != "notes__read" || answer.Server != "notes" || answer.Digest != sum(result) || answer.Call == "" {
			t.Errorf("%s: the result: %+v", when, answer)
		}
	}
	why := func(h *house, name string) *workspace.Why {
		t.Helper()
		root, err := h.service().WorkspaceWhy(t.Context(), name, workspace.WhyOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return root
	}
	root := why(h, "frogs")
	check(h, "at once", root)
	if root.Written.Prompt != "Write a page about frogs." || onAnyPath(root, "memory").Written.Prompt != "Learn about frogs." {
		t.Errorf("the prompts are %q and %q", root.Written.Prompt, onAnyPath(root, "memory").Written.Prompt)
	}
	h.restart()
	check(h, "after a restart", why(h, "frogs#b1"))
	h.checkCalls(root)
	checkProv(t, admin.WorkspaceProv(root))

	dir := t.TempDir()
	h.person("workspace_export", map[string]any{"path": dir})
	other := newHouse(t, server)
	other.person("workspace_import", map[string]any{"path": dir})
	imported := why(other, "frogs")
	if imported.Written.Origin != workspace.Imported || len(imported.Sources) != 1 || imported.Sources[0].Kind != workspace.Statement {
		t.Fatalf("the imported page: %+v", imported)
	}
	check(other, "after an import", imported.Sources[0].Sources[0])
	checkProv(t, admin.WorkspaceProv(imported))
	if page := imported.Sources[0].Sources[0]; page.Written.Prompt != "" || page.Digest != imported.Digest {
		t.Errorf("the stated page: %+v", page)
	}

	// A statement about another text is not taken.
	h.put(filepath.Join(dir, "frogs.md"), "Another text.\n")
	third := newHouse(t, server)
	third.person("workspace_import", map[string]any{"path": dir})
	if forged := why(third, "frogs"); len(forged.Sources) != 0 {
		t.Errorf("a changed file has the sources %+v", forged.Sources[0])
	}
}

// checkCalls asks why the call was made that wrote a page.
func (h *house) checkCalls(root *workspace.Why) {
	h.t.Helper()
	for _, id := range []string{root.Written.Call, strings.ToLower(root.Written.Call[:24])} {
		answer, err := h.service().Why(h.t.Context(), id, 50)
		if err != nil {
			h.t.Fatal(err)
		}
		c := answer.Call
		if c == nil || c.Tool != "page_create" || c.Thread != "second" || c.Prompt != "Write a page about frogs." || c.Model != "acme/large-1" ||
			c.Verdict != "allow" || c.Outcome != "ok" || len(c.Writes) != 1 || c.Writes[0].Page != "frogs" {
			h.t.Fatalf("the call: %+v", c)
		}
		if len(c.Reads) != 2 || c.Reads[0].Name != "notes__read" || c.Reads[0].Digest != onAnyPath(root, workspace.ResultSource).Digest {
			h.t.Errorf("it had read %+v", c.Reads)
		}
	}
	if _, err := h.service().Why(h.t.Context(), "01ARZ3NDEKTSV4RRFFQ69G5FAV", 50); err == nil || !strings.Contains(err.Error(), "the audit has no call") {
		h.t.Errorf("a call that does not exist: %v", err)
	}
}

// checkProv checks that all that a PROV document relates is declared, and that its identifiers are qualified names.
func checkProv(t *testing.T, d admin.ProvDocument) {
	t.Helper()
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`^drawbridge:[a-z]+-[0-9a-f]{16}$`)
	role := map[string]string{"prov:generatedEntity": "entity", "prov:usedEntity": "entity", "prov:entity": "entity",
		"prov:activity": "activity", "prov:agent": "agent"}
	for kind, elements := range all {
		for id, element := range elements {
			if kind != "prefix" && !name.MatchString(id) {
				t.Errorf("%s %q is not a qualified name", kind, id)
			}
			attributes, _ := element.(map[string]any)
			for attribute, of := range role {
				if value, ok := attributes[attribute]; ok && all[of][fmt.Sprint(value)] == nil {
					t.Errorf("%s %s names %s %v, which is not declared", kind, id, attribute, value)
				}
			}
		}
	}
	if len(d.WasDerivedFrom) < 3 || len(d.WasGeneratedBy) < 2 || len(d.WasAssociatedWith) < 2 {
		t.Errorf("the document is %s", text)
	}
}

// TestWhyAFile: an agent reads a file and a server, and writes another file.
func TestWhyAFile(t *testing.T) {
	server := mcptest.NewServer(t, mcptest.Tool{Name: "read", Answer: mcptest.Text("The limit is 5.")})
	h := newHouse(t, server)
	h.prompt("thread", "Set the limit.")
	input, output := filepath.Join(h.project, "in.txt"), filepath.Join(h.project, "out.txt")
	h.put(input, "limit\n")
	result := h.agent("thread", "notes__read", nil)
	h.agent("thread", "read", map[string]any{"path": input})
	h.agent("thread", "write", map[string]any{"path": output, "content": "# limits\nlimit = 5\n"})
	h.agent("thread", "edit", map[string]any{"path": output, "oldText": "# limits\n", "newText": "# all\n# limits\n"})
	h.restart()

	answer := h.whyFile("out.txt:3") // a line that moved
	w := answer.Writer
	if w == nil || w.Tool != "write" || !w.Recorded || w.Thread != "thread" || w.Prompt != "Set the limit." || w.ID == "" || answer.Range.First != 2 {
		t.Fatalf("the writer: %+v of %+v", w, answer.Range)
	}
	want := []admin.Read{{Kind: "file", Name: input, Digest: sum([]byte("limit\n"))},
		{Kind: "result", Name: "notes__read", Server: "notes", Digest: sum(result)}}
	got := slices.Clone(w.Reads)
	for i := range got {
		if got[i].Call == "" {
			t.Errorf("a read without a call: %+v", got[i])
		}
		got[i].Call = ""
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reads (-want +got):\n%s", diff)
	}
	whole := h.whyFile("out.txt")
	if len(whole.Ranges) != 2 || whole.Ranges[0].By.Tool != "edit" || whole.Ranges[1].By.Tool != "write" {
		t.Errorf("ranges: %+v", whole.Ranges)
	}
	h.checkTrace(whole)
	if got := admin.RunTrailers(whole); !slices.Equal(got, []string{"Drawbridge-Run: thread/thread"}) {
		t.Errorf("trailers: %q", got)
	}

	h.put(output, "# all\n# limits\nlimit = 6\n")
	if byHand := h.whyFile("out.txt:3"); byHand.ChangedAfter == nil || byHand.ChangedAfter.Tool != "edit" || byHand.Writer != nil {
		t.Errorf("after a change by hand: %+v", byHand)
	}
	if _, err := h.service().AgentTrace(h.whyFile("out.txt"), "1"); err == nil {
		t.Error("a file that was changed by hand has a trace")
	}
	if _, err := h.service().Why(t.Context(), "in.txt", 50); err == nil || !strings.Contains(err.Error(), "no tool of Drawbridge changed the file") {
		t.Errorf("a file that no tool changed: %v", err)
	}
}

// TestWhyOfAPollingRun has a run read more different results than it notes, before and between two writes: none is
// missing.
func TestWhyOfAPollingRun(t *testing.T) {
	n := 0
	count := func(_ context.Context, c *mcptest.ServerCall) (json.RawMessage, error) {
		n++
		return c.Text(fmt.Sprintf("result %d", n)), nil
	}
	h := newHouse(t, mcptest.NewServer(t, mcptest.Tool{Name: "read", Answer: count}))
	for i, reads := range []int{deck.MaxResultVersions + 3, 5} {
		for range reads {
			h.agent("thread", "notes__read", nil)
		}
		path := filepath.Join(h.project, fmt.Sprintf("%d.txt", i))
		h.agent("thread", "write", map[string]any{"path": path, "content": "x\n"})
	}
	h.restart()
	for i, want := range []int{deck.MaxResultVersions + 3, deck.MaxResultVersions + 8} {
		w := h.whyFile(fmt.Sprintf("%d.txt:1", i)).Writer
		if got := len(w.Reads) + w.MoreReads; got != want || len(w.Reads) != 50 {
			t.Errorf("%d.txt: %d reads, want %d", i, got, want)
		}
		if !slices.IsSortedFunc(w.Reads, func(a, b admin.Read) int { return strings.Compare(b.Call, a.Call) }) {
			t.Errorf("%d.txt: the reads are not in the order of the calls, the last one first: %+v", i, w.Reads)
		}
	}
}

// TestWhyNamesTheWorkspace has a run read memory, and write a page and a file: the descriptions of its calls have names
// beside the IDs.
func TestWhyNamesTheWorkspace(t *testing.T) {
	h := newHouse(t, mcptest.NewServer(t, mcptest.Tool{Name: "read", Answer: mcptest.Text("x")}))
	h.agent("first", "memory_write", map[string]any{"tier": "workspace", "name": "limit", "text": "The limit is 5."})
	h.agent("second", "memory_read", map[string]any{"tier": "workspace"})
	h.agent("second", "page_create", map[string]any{"title": "Limits", "text": "The limit is 5."})
	h.agent("second", "write", map[string]any{"path": filepath.Join(h.project, "out.txt"), "content": "5\n"})
	h.restart()
	w := h.whyFile("out.txt:1").Writer
	i := slices.IndexFunc(w.Reads, func(r admin.Read) bool { return r.Kind == "entity" })
	if i < 0 || w.Names[w.Reads[i].Name] != "memory workspace/limit" {
		t.Errorf("the reads %+v have the names %v", w.Reads, w.Names)
	}
	page, err := h.service().WorkspaceWhy(t.Context(), "limits", workspace.WhyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := h.service().Why(t.Context(), page.Written.Call, 50)
	if err != nil || len(answer.Call.Writes) != 1 {
		t.Fatalf("the call %+v, %v", answer.Call, err)
	}
	if got := answer.Call.Names[string(answer.Call.Writes[0].Entity)]; got != "page Limits (limits)" {
		t.Errorf("the name %q", got)
	}
}

func (h *house) whyFile(target string) *admin.FileWhy {
	h.t.Helper()
	answer, err := h.service().Why(context.WithoutCancel(h.t.Context()), target, 50)
	if err != nil || answer.File == nil {
		h.t.Fatalf("%s: %+v, %v", target, answer, err)
	}
	return answer.File
}

// checkTrace checks the trace record of out.txt.
func (h *house) checkTrace(file *admin.FileWhy) {
	h.t.Helper()
	trace, err := h.service().AgentTrace(file, "1.0")
	if err != nil {
		h.t.Fatal(err)
	}
	if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(trace.ID) || trace.Version != "0.1" {
		h.t.Errorf("trace %s, version %s", trace.ID, trace.Version)
	}
	want := []admin.TracedFile{{Path: "out.txt", Conversations: []admin.TracedConversation{{URL: "drawbridge://run/thread/thread",
		Contributor: map[string]string{"type": "ai", "model_id": "acme/large-1"}, Ranges: []admin.TracedRange{
			{StartLine: 1, EndLine: 1, ContentHash: "sha256:" + sum([]byte("# all\n"))},
			{StartLine: 2, EndLine: 3, ContentHash: "sha256:" + sum([]byte("# limits\nlimit = 5\n"))}}}}}}
	if diff := cmp.Diff(want, trace.Files); diff != "" {
		h.t.Errorf("trace (-want +got):\n%s", diff)
	}
}
