// Package client knows the programs that Drawbridge can be put into: where each keeps its configuration, and how it writes
// a server down there.
//
// No file is read or written here.
package client

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/drawbridge-mcp/drawbridge/config/doc"
)

// An Entry is how a client starts a server on stdio.
type Entry struct {
	Name, Command string
	Args          []string
	Env           map[string]string
}

// A Client is a program that can have Drawbridge as one of its MCP servers.
type Client struct {
	// ID is what "drawbridge connect" calls it, Title what people do.
	ID, Title string
	// Format is that of its file, Member leads to what holds the servers there, by name.
	Format doc.Format
	Member []string
	// files are where the user-level configuration may be: the first that exists counts, else the first.
	files func(Places) []string
	// row is our entry in the client's shape.
	row func(Entry) any
}

// All is the table. The shapes are those that each program's own "mcp add", or its documentation, writes.
func All() []Client {
	servers := []string{"mcpServers"}
	return []Client{
		{"claude-code", "Claude Code", doc.JSON, servers, claudeCodeFiles, typedRow},
		{"claude-desktop", "Claude Desktop", doc.JSON, servers, claudeDesktopFiles, bareRow},
		{"cursor", "Cursor", doc.JSON, servers, inHome(".cursor/mcp.json"), typedRow},
		{"vscode", "VS Code", doc.JSON, []string{"servers"}, vscodeFiles, typedRow},
		{"windsurf", "Windsurf", doc.JSON, servers, inHome(".codeium/windsurf/mcp_config.json"), bareRow},
		{"codex", "Codex", doc.TOML, []string{"mcp_servers"}, codexFiles, bareRow},
		{"gemini", "Gemini CLI", doc.JSON, servers, geminiFiles, bareRow},
		{"opencode", "opencode", doc.JSON, []string{"mcp"}, opencodeFiles, opencodeRow},
		{"zed", "Zed", doc.JSON, []string{"context_servers"}, zedFiles, bareRow},
		{"crush", "Crush", doc.JSON, []string{"mcp"}, crushFiles, typedRow},
		{"goose", "goose", doc.YAML, []string{"extensions"}, gooseFiles, gooseRow},
		{"cline", "Cline", doc.JSON, servers, clineFiles, clineRow},
	}
}

// Path is the client's user-level configuration file: the first that exists of those where it may be, else the first.
func (c Client) Path(at Places) string {
	files := c.files(at)
	for _, file := range files {
		if _, err := os.Lstat(file); err == nil {
			return file
		}
	}
	return files[0]
}

// Places are the directories that clients look in.
type Places struct {
	// GOOS is the system's; Home and Config are directories.
	GOOS, Home, Config string
	// Lookup finds a variable.
	Lookup func(string) (string, bool)
}

// env gives a directory that a variable names; "" where it names none.
func (p Places) env(name string) string {
	dir, _ := p.Lookup(name)
	if !filepath.IsAbs(dir) {
		return ""
	}
	return dir
}

// support is where programs with windows keep their data.
func (p Places) support() string {
	switch p.GOOS {
	case "darwin":
		return filepath.Join(p.Home, "Library", "Application Support")
	case "windows":
		return p.roaming()
	}
	return p.Config
}

func (p Places) roaming() string {
	if dir := p.env("APPDATA"); dir != "" {
		return dir
	}
	return filepath.Join(p.Home, "AppData", "Roaming")
}

func inHome(path string) func(Places) []string {
	return func(p Places) []string { return []string{filepath.Join(p.Home, filepath.FromSlash(path))} }
}

// under is the file in the directory that a variable names, else in dir.
func (p Places) under(variable, dir string, file ...string) []string {
	if named := p.env(variable); named != "" {
		dir = named
	}
	return []string{filepath.Join(append([]string{dir}, file...)...)}
}

func claudeCodeFiles(p Places) []string { return p.under("CLAUDE_CONFIG_DIR", p.Home, ".claude.json") }

func codexFiles(p Places) []string {
	return p.under("CODEX_HOME", filepath.Join(p.Home, ".codex"), "config.toml")
}

// geminiFiles: GEMINI_CLI_HOME stands for the home, not for the directory in it.
func geminiFiles(p Places) []string {
	return p.under("GEMINI_CLI_HOME", p.Home, ".gemini", "settings.json")
}

func crushFiles(p Places) []string {
	return p.under("CRUSH_GLOBAL_CONFIG", filepath.Join(p.Config, "crush"), "crush.json")
}

// claudeDesktopFiles: on Linux there is no program of the vendor's, and its builders disagree about the name.
func claudeDesktopFiles(p Places) []string {
	const file = "claude_desktop_config.json"
	files := []string{filepath.Join(p.support(), "Claude", file)}
	if p.GOOS != "darwin" && p.GOOS != "windows" {
		files = append(files, filepath.Join(p.Config, "claude", file))
	}
	return files
}

func vscodeFiles(p Places) []string {
	return []string{filepath.Join(p.support(), "Code", "User", "mcp.json")}
}

func clineFiles(p Places) []string {
	return []string{filepath.Join(p.support(), "Code", "User", "globalStorage", "saoudrizwan.claude-dev", "settings", "cline_mcp_settings.json")}
}

// opencodeFiles: it looks in ~/.config on every system.
func opencodeFiles(p Places) []string {
	dir := filepath.Join(p.Config, "opencode")
	return []string{filepath.Join(dir, "opencode.json"), filepath.Join(dir, "opencode.jsonc")}
}

func zedFiles(p Places) []string {
	dir := filepath.Join(p.Config, "zed")
	if p.GOOS == "windows" {
		dir = filepath.Join(p.roaming(), "Zed")
	}
	return []string{filepath.Join(dir, "settings.json")}
}

func gooseFiles(p Places) []string {
	if root := p.env("GOOSE_PATH_ROOT"); root != "" {
		return []string{filepath.Join(root, "config", "config.yaml")}
	}
	if p.GOOS == "windows" {
		return []string{filepath.Join(p.roaming(), "Block", "goose", "config", "config.yaml")}
	}
	return []string{filepath.Join(p.Config, "goose", "config.yaml")}
}

// stdioRow is the shape that most clients share. Its members are in the order in which they are written.
type stdioRow struct {
	Type    string            `json:"type,omitempty"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env,omitempty"`
}

func bareRow(e Entry) any { return stdioRow{"", e.Command, e.args(), e.Env} }

func typedRow(e Entry) any { return stdioRow{"stdio", e.Command, e.args(), e.Env} }

func clineRow(e Entry) any {
	return struct {
		stdioRow
		Disabled bool `json:"disabled"`
	}{stdioRow{"stdio", e.Command, e.args(), e.Env}, false}
}

func opencodeRow(e Entry) any {
	return struct {
		Type        string            `json:"type"`
		Command     []string          `json:"command"`
		Environment map[string]string `json:"environment,omitempty"`
		Enabled     bool              `json:"enabled"`
	}{"local", append([]string{e.Command}, e.Args...), e.Env, true}
}

// gooseRow: goose refuses an extension that lacks one of these. The timeout is in seconds.
func gooseRow(e Entry) any {
	envs := e.Env
	if envs == nil {
		envs = map[string]string{}
	}
	return struct {
		Enabled bool              `json:"enabled"`
		Type    string            `json:"type"`
		Name    string            `json:"name"`
		Cmd     string            `json:"cmd"`
		Args    []string          `json:"args"`
		Envs    map[string]string `json:"envs"`
		EnvKeys []string          `json:"env_keys"`
		Timeout int               `json:"timeout"`
	}{true, "stdio", e.Name, e.Command, e.args(), envs, []string{}, 300}
}

// args is never nil: the clients want a list.
func (e Entry) args() []string { return append([]string{}, e.Args...) }

// Row is an entry as the client writes it.
func (c Client) Row(e Entry) (json.RawMessage, error) { return json.Marshal(c.row(e)) }
