package clientconfig

import (
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPaths(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths have slashes")
	}
	env := map[string]string{
		"CLAUDE_CONFIG_DIR": "/e/claude", "CODEX_HOME": "/e/codex", "GEMINI_CLI_HOME": "/e/gemini",
		"CRUSH_GLOBAL_CONFIG": "/e/crush",
		"GOOSE_PATH_ROOT":     "/e/goose", "APPDATA": "/e/roaming",
	}
	at := func(goos string, env map[string]string) ClientDirs {
		return ClientDirs{goos, "/h", "/x", func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	}
	got := map[string][]string{}
	for _, c := range Clients() {
		for _, p := range []ClientDirs{at("linux", nil), at("darwin", nil), at("windows", nil), at("windows", env)} {
			got[c.ID] = append(got[c.ID], c.ConfigPath(p))
		}
	}
	const code, globals = "/Code/User/mcp.json",
		"/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
	four := func(path string) []string { return []string{path, path, path, path} }
	named := func(path, byVariable string) []string { return []string{path, path, path, byVariable} }
	want := map[string][]string{
		"claude-code": named("/h/.claude.json", "/e/claude/.claude.json"),
		"claude-desktop": {"/x/Claude/claude_desktop_config.json",
			"/h/Library/Application Support/Claude/claude_desktop_config.json",
			"/h/AppData/Roaming/Claude/claude_desktop_config.json", "/e/roaming/Claude/claude_desktop_config.json"},
		"cursor": four("/h/.cursor/mcp.json"),
		"vscode": {"/x" + code, "/h/Library/Application Support" + code, "/h/AppData/Roaming" + code,
			"/e/roaming" + code},
		"windsurf": four("/h/.codeium/windsurf/mcp_config.json"),
		"codex":    named("/h/.codex/config.toml", "/e/codex/config.toml"),
		"gemini":   named("/h/.gemini/settings.json", "/e/gemini/.gemini/settings.json"),
		"opencode": four("/x/opencode/opencode.json"),
		"zed": {"/x/zed/settings.json", "/x/zed/settings.json", "/h/AppData/Roaming/Zed/settings.json",
			"/e/roaming/Zed/settings.json"},
		"crush": named("/x/crush/crush.json", "/e/crush/crush.json"),
		"goose": {"/x/goose/config.yaml", "/x/goose/config.yaml",
			"/h/AppData/Roaming/Block/goose/config/config.yaml", "/e/goose/config/config.yaml"},
		"cline": {"/x" + globals, "/h/Library/Application Support" + globals, "/h/AppData/Roaming" + globals,
			"/e/roaming" + globals},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
