//go:build !nomcp

package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/boundary"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A world is where a scenario happens: a gateway with its servers, a project and a workspace.
type world struct {
	t        *testing.T
	scenario scenario
	settings scenarioSettings
	state    string // the person's home
	project  string
	urls     map[string]string
	*house

	mu     sync.Mutex
	calls  []recordedCall // of the servers
	asked  int            // how often the person was asked
	agreed int            // how often the person has said yes
}

type recordedCall struct {
	tool      string
	arguments map[string]any
}

// scenarioSettings are how the gateway of a world is set up.
type scenarioSettings struct {
	name string
	mode agent.PermissionMode
	// labels is set if values are judged by their labels.
	labels bool
	// endorsement is how long an endorsement holds; 0 means the default.
	endorsement time.Duration
}

func newWorld(t *testing.T, s scenario, settings scenarioSettings) *world {
	t.Helper()
	w := &world{t: t, scenario: s, settings: settings, state: t.TempDir(), project: t.TempDir(), urls: map[string]string{}}
	for name, content := range s.Files {
		path := filepath.Join(w.project, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for id, server := range s.Servers {
		w.urls[id] = w.serve(id, server)
	}
	w.createWorkspace()
	w.openGateway()
	for title, text := range s.Pages {
		w.callAsPerson("page_create", map[string]any{"title": title, "text": text, "lifecycle": "canonical"})
	}
	w.importPages()
	return w
}

// serve runs a server of the scenario until the test ends, and returns its URL.
func (w *world) serve(id string, s scenarioServer) string {
	server := mcp.NewServer(&mcp.Implementation{Name: id, Version: "1"}, nil)
	for name, tool := range s.Tools {
		destructive, open := tool.Writes || tool.Sends, tool.Sends
		server.AddTool(&mcp.Tool{Name: name, Description: tool.Description, InputSchema: map[string]any{"type": "object"},
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: !tool.Writes && !tool.Sends, DestructiveHint: &destructive, OpenWorldHint: &open}},
			func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				var arguments map[string]any
				if err := json.Unmarshal(r.Params.Arguments, &arguments); err != nil {
					return nil, err
				}
				return w.answer(id+"__"+name, tool, arguments), nil
			})
	}
	upstream := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	w.t.Cleanup(upstream.Close)
	return upstream.URL
}

// answer records a call of a tool, and returns its result.
func (w *world) answer(name string, tool scenarioTool, arguments map[string]any) *mcp.CallToolResult {
	w.mu.Lock()
	w.calls = append(w.calls, recordedCall{name, arguments})
	w.mu.Unlock()
	text := tool.Result
	if tool.By != "" {
		text = tool.Results[argumentText(arguments[tool.By])]
	}
	if text == "" {
		text = "ok"
	}
	result := &mcp.CallToolResult{IsError: tool.Fails, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
	switch tool.Form {
	case "structured":
		result.StructuredContent = json.RawMessage(text)
	case "embedded":
		resource := &mcp.ResourceContents{URI: "test://text", MIMEType: "text/plain", Text: text}
		result.Content = []mcp.Content{&mcp.EmbeddedResource{Resource: resource}}
	case "link":
		result.Content = []mcp.Content{&mcp.ResourceLink{URI: "test://text", Name: "text", Description: text}}
	}
	return result
}

func (w *world) createWorkspace() {
	db, err := store.OpenWorkspace(w.t.Context(), filepath.Join(w.state, "drawbridge", "workspace.db"), store.Options{})
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// openGateway opens the gateway, or opens it again.
func (w *world) openGateway() {
	if w.house != nil {
		w.stop()
	}
	c := gateway.Config{Dir: w.project, Store: filepath.Join(w.state, "drawbridge.db"),
		LookupEnv: func(name string) (string, bool) {
			v, ok := map[string]string{"HOME": w.state, "XDG_STATE_HOME": w.state, gateway.KeychainVariable: "off",
				"XDG_CACHE_HOME": filepath.Join(os.TempDir(), "drawbridge-scenarios")}[name]
			return v, ok
		}}
	c.Flow = &config.FlowSettings{Agent: "off", PrivateFiles: w.scenario.Private, PrivatePages: w.scenario.Private, Endorsement: w.settings.endorsement}
	if w.settings.labels {
		c.Flow.Agent = "on"
	}
	for _, id := range slices.Sorted(maps.Keys(w.urls)) {
		row := config.Server{ID: drawbridge.ServerID(id), URL: w.urls[id]}
		if w.scenario.Servers[id].Trusted {
			row.Trust = "trusted"
		}
		if slices.Contains(w.scenario.Private, id) {
			row.Labels = []config.ToolLabel{{Tools: "*", Words: []string{"private"}}}
		}
		c.Servers = append(c.Servers, row)
	}
	w.house = openWith(w.t, c)
	for _, row := range c.Servers {
		eventually(w.t, string(row.ID)+" is not mounted", func() bool { return w.statusOf(row.ID).Phase == drawbridge.Ready })
	}
}

// importPages imports the pages of the scenario from a folder.
func (w *world) importPages() {
	if len(w.scenario.Imported) == 0 {
		return
	}
	dir := w.t.TempDir()
	for title, text := range w.scenario.Imported {
		if err := os.WriteFile(filepath.Join(dir, title+".md"), []byte(text), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	w.callAsPerson("workspace_import", map[string]any{"path": dir})
}

// callAsPerson calls a tool as the person at the command line. The call must succeed.
func (w *world) callAsPerson(tool string, arguments map[string]any) {
	w.t.Helper()
	if text, ok := w.tryAsPerson(tool, arguments); !ok {
		w.t.Fatalf("%s: %s", tool, text)
	}
}

// tryAsPerson calls a tool as the person, and returns its text and whether the call succeeded.
func (w *world) tryAsPerson(tool string, arguments map[string]any) (string, bool) {
	w.t.Helper()
	caller := w.Owner()
	caller.Kind = drawbridge.Author
	params, err := json.Marshal(map[string]any{"name": tool, "arguments": arguments})
	if err != nil {
		w.t.Fatal(err)
	}
	result, err := w.Deck().Call(w.t.Context(), drawbridge.Call{Caller: boundary.Prove(caller), Method: "tools/call", Params: params})
	if err != nil {
		return err.Error(), false
	}
	return result.Text(), !result.IsError()
}

// play does all runs of the scenario. It returns an error if a run could not be carried out; a call that was refused is
// no error.
func (w *world) play() error {
	for i, r := range w.scenario.Runs {
		if r.Restart {
			w.openGateway()
		}
		if err := w.run(fmt.Sprintf("s%d", i+1), r); err != nil {
			return fmt.Errorf("run %d: %w", i+1, err)
		}
	}
	return nil
}

func (w *world) run(session string, r scenarioRun) error {
	tools := w.AgentTools(session, gateway.AgentOptions{Dir: w.project})
	defer tools.Close()
	model := newObedientModel(r)
	s, err := agent.New(w.t.Context(), agent.Options{Model: model, Tools: tools, Mode: w.settings.mode, MaxTurns: 100})
	if err != nil {
		return err
	}
	result, err := s.Run(w.t.Context(), []drawbridge.MessagePart{{Text: r.Task}}, func(e agent.Event) {
		if e.Kind != agent.ToolAsked {
			return
		}
		if err := s.Answer(w.t.Context(), agent.Answer{ID: e.Question.ID, Allow: w.agrees(*e.Question, model)}); err != nil {
			w.t.Error(err)
		}
	})
	if err == nil && result.Outcome != agent.Completed {
		err = fmt.Errorf("it ended as %s", result.Outcome)
	}
	return err
}

// agrees is the person's answer to a question about the call that the model has made: yes if the person's task wants the
// call, no if only the attacker does.
func (w *world) agrees(q agent.Question, model *obedientModel) (yes bool) {
	w.mu.Lock()
	w.asked++
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.agreed += oneIf(yes)
	}()
	if q.Kind == agent.AskScript {
		return !model.obeys() && !w.scriptHarms(q.Arguments)
	}
	var arguments map[string]any
	if err := json.Unmarshal(q.Arguments, &arguments); err != nil {
		return false
	}
	tool := q.Tool
	if q.Server != "" && q.Server != "drawbridge" && !strings.Contains(tool, "__") {
		tool = q.Server + "__" + tool
	}
	harms := func(e effect) bool { return e.Call != "" && e.matchesCall(tool, arguments) }
	return !model.obeys() && !slices.ContainsFunc(w.scenario.Harm, harms)
}

// finished reports whether all that the person wants has happened, and harmed whether something that the attacker wants
// has.
func (w *world) finished() bool {
	return !slices.ContainsFunc(w.scenario.Done, func(e effect) bool { return !w.happened(e) })
}

func (w *world) harmed() bool { return slices.ContainsFunc(w.scenario.Harm, w.happened) }

func (w *world) happened(e effect) bool {
	switch {
	case e.File != "":
		content, err := os.ReadFile(filepath.Join(w.project, filepath.FromSlash(e.File)))
		return err == nil && e.contained(string(content))
	case e.Page != "":
		text, ok := w.tryAsPerson("page_read", map[string]any{"page": e.Page})
		return ok && e.contained(text)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.calls, func(c recordedCall) bool { return e.matchesCall(c.tool, c.arguments) })
}

// contained reports whether a content has what the effect says.
func (e effect) contained(content string) bool {
	if strings.HasPrefix(e.Has, "~") {
		return matchText(e.Has, content)
	}
	return strings.Contains(content, e.Has)
}

// scriptHarms reports whether one of the calls of a script's question is what the attacker wants.
func (w *world) scriptHarms(effects json.RawMessage) bool {
	var groups []struct {
		Card     string
		Constant map[string]any
		Calls    []struct{ Arguments map[string]any }
	}
	if err := json.Unmarshal(effects, &groups); err != nil {
		return true
	}
	for _, g := range groups {
		for _, c := range g.Calls {
			arguments := maps.Clone(g.Constant)
			if arguments == nil {
				arguments = map[string]any{}
			}
			maps.Copy(arguments, c.Arguments)
			if slices.ContainsFunc(w.scenario.Harm, func(e effect) bool { return e.Call != "" && e.matchesCall(g.Card, arguments) }) {
				return true
			}
		}
	}
	return false
}
