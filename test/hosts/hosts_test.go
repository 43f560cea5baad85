//go:build hosts

package hosts

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// say is what the person asks for.
func say(m *model) string { return "Have the echo tool say " + m.word }

func TestCodex(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	m := startModel(t, h, "mcp__drawbridge", "everything__echo")
	h.write(t, ".codex/config.toml", `# Mine.
model = "mock"
model_provider = "mock"
check_for_update_on_startup = false

[model_providers.mock]
name = "Mock"
base_url = "`+m.url+`/v1"
wire_api = "responses"

[features]
plugins = false
apps = false
remote_plugin = false

[analytics]
enabled = false
`)
	connect(t, h, "codex")
	codex := []string{module(t, "@openai/codex/bin/codex.js")}
	checkCodexList(t, h.run(t, node, append(codex, "mcp", "list", "--json")...))

	type item struct {
		Type, Text, Server, Tool, Status string
		Arguments                        object
		Result                           *struct{ Content []object }
	}
	var items []item
	for _, event := range decodeLines[struct {
		Type string
		Item item
	}](t, h.run(t, node, append(codex, "exec", "--json", "--skip-git-repo-check", say(m))...)) {
		// The error is that Codex has no data of this model.
		if event.Type == "item.completed" && event.Item.Type != "error" {
			items = append(items, event.Item)
		}
	}
	want := []item{
		{
			Type: "mcp_tool_call", Server: "drawbridge", Tool: "everything__echo", Status: "completed",
			Arguments: object{"message": m.word},
			Result:    &struct{ Content []object }{[]object{{"type": "text", "text": m.output()}}},
		},
		{Type: "agent_message", Text: done},
	}
	if diff := cmp.Diff(want, items); diff != "" {
		t.Errorf("codex exec (-want +got):\n%s", diff)
	}
	m.checkTurn(t, "/v1/responses")
}

func checkCodexList(t *testing.T, printed string) {
	t.Helper()
	type transport struct {
		Type, Command string
		Args          []string
	}
	type server struct {
		Name      string
		Enabled   bool
		Transport transport
	}
	var servers []server
	decode(t, printed, &servers)
	want := []server{{"drawbridge", true, transport{"stdio", drawbridge, []string{"serve"}}}}
	if diff := cmp.Diff(want, servers); diff != "" {
		t.Errorf("codex mcp list (-want +got):\n%s", diff)
	}
}

func TestGemini(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	m := startModel(t, h, "", "mcp_drawbridge_everything__echo")
	h.env = append(h.env, "GEMINI_API_KEY=none", "GOOGLE_GEMINI_BASE_URL="+m.url)
	h.write(t, ".gemini/settings.json", object{
		"security": object{"auth": object{"selectedType": "gemini-api-key"}, "folderTrust": object{"enabled": false}},
		"general":  object{"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
		"privacy":  object{"usageStatisticsEnabled": false},
	})
	connect(t, h, "gemini")
	gemini := module(t, "@google/gemini-cli/bundle/gemini.js")

	_, listed := h.runBoth(t, node, gemini, "mcp", "list") // it prints the list on standard error
	if want := "✓ drawbridge: " + drawbridge + " serve (stdio) - Connected"; !strings.Contains(listed, want) {
		t.Errorf("gemini mcp list: no %q in:\n%s", want, listed)
	}

	type used struct{ Count, Success, Fail int }
	type turn struct {
		Response string
		Stats    struct {
			Tools struct{ ByName map[string]used }
		}
	}
	var got, want turn
	decode(t, h.run(t, node, gemini, "--model", "gemini-2.5-flash", "--approval-mode", "yolo", "--output-format",
		"json", "--prompt", say(m)), &got)
	want.Response = done
	want.Stats.Tools.ByName = map[string]used{m.tool: {Count: 1, Success: 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("gemini --prompt (-want +got):\n%s", diff)
	}
	m.checkTurn(t, "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse")
}

func TestOpencode(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("opencode is installed for Linux x64 only")
	}
	h := newHome(t, "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1",
		"OPENCODE_DISABLE_LSP_DOWNLOAD=1", "npm_config_offline=true")
	m := startModel(t, h, "", "drawbridge_everything__echo")
	h.write(t, ".config/opencode/opencode.json", object{
		"$schema": "https://opencode.ai/config.json", "autoupdate": false, "share": "disabled",
		"model": "mock/mock", "enabled_providers": []string{"mock"},
		"provider": object{"mock": object{
			"npm":     "@ai-sdk/openai-compatible",
			"options": object{"baseURL": m.url + "/v1", "apiKey": "none"},
			"models":  object{"mock": object{}},
		}},
	})
	connect(t, h, "opencode")
	opencode := module(t, "opencode-linux-x64-baseline/bin/opencode")

	listed := h.run(t, opencode, "mcp", "list")
	listed = strings.ReplaceAll(listed, "\x1b[90m", "") // grey
	if want := "✓ drawbridge connected\n│      " + drawbridge + " serve\n"; !strings.Contains(listed, want) {
		t.Errorf("opencode mcp list: no %q in:\n%s", want, listed)
	}

	type state struct {
		Status, Output string
		Input          object
	}
	type part struct {
		Type, Tool, Text string
		State            *state
	}
	var parts []part
	for _, event := range decodeLines[struct {
		Type string
		Part part
	}](t, h.run(t, opencode, "run", "--format", "json", "--title", "Echo", say(m))) {
		if event.Type != "step_start" && event.Type != "step_finish" {
			parts = append(parts, event.Part)
		}
	}
	want := []part{
		{Type: "tool", Tool: m.tool, State: &state{"completed", m.output(), object{"message": m.word}}},
		{Type: "text", Text: done},
	}
	if diff := cmp.Diff(want, parts); diff != "" {
		t.Errorf("opencode run (-want +got):\n%s", diff)
	}
	m.checkTurn(t, "/v1/chat/completions")
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
}

// decodeLines reads a JSON document a line.
func decodeLines[T any](t *testing.T, text string) (all []T) {
	t.Helper()
	for line := range strings.Lines(text) {
		var one T
		decode(t, line, &one)
		all = append(all, one)
	}
	return all
}
