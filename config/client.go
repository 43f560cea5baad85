package config

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/drawbridge-mcp/drawbridge/config/doc"
)

// ClientEntry is the name of our entry in a client's configuration.
const ClientEntry = "drawbridge"

// An Entry is how a client starts Drawbridge: a server on stdio.
type Entry struct {
	// Command is the absolute path of the program, Args what it is given: "serve", and more.
	Command string
	Args    []string
	// Env adds to what the client gives its servers; names are distinct.
	Env []Pair
}

// A Client is a program that can have Drawbridge as one of its MCP servers.
type Client struct {
	// ID is what "drawbridge connect" calls it, Title what people do.
	ID, Title string

	format doc.Format
	// files are where the user-level configuration may be: the first that exists counts, else the first.
	files func(places) []string
	// member leads to what holds the servers by name.
	member []string
	// row is our entry in the client's shape.
	row func(Entry) any
}

// clients is the table. The shapes are those that each program's own "mcp add", or its documentation, writes.
func clients() []Client {
	servers := []string{"mcpServers"}
	return []Client{
		{"claude-code", "Claude Code", doc.JSON, claudeCodeFiles, servers, typedRow},
		{"claude-desktop", "Claude Desktop", doc.JSON, claudeDesktopFiles, servers, bareRow},
		{"cursor", "Cursor", doc.JSON, inHome(".cursor/mcp.json"), servers, typedRow},
		{"vscode", "VS Code", doc.JSON, vscodeFiles, []string{"servers"}, typedRow},
		{"windsurf", "Windsurf", doc.JSON, inHome(".codeium/windsurf/mcp_config.json"), servers, bareRow},
		{"codex", "Codex", doc.TOML, codexFiles, []string{"mcp_servers"}, bareRow},
		{"gemini", "Gemini CLI", doc.JSON, geminiFiles, servers, bareRow},
		{"opencode", "opencode", doc.JSON, opencodeFiles, []string{"mcp"}, opencodeRow},
		{"zed", "Zed", doc.JSON, zedFiles, []string{"context_servers"}, bareRow},
		{"crush", "Crush", doc.JSON, crushFiles, []string{"mcp"}, typedRow},
		{"goose", "goose", doc.YAML, gooseFiles, []string{"extensions"}, gooseRow},
		{"cline", "Cline", doc.JSON, clineFiles, servers, clineRow},
	}
}

// Clients lists the programs that Drawbridge can be connected to.
func Clients() []Client { return clients() }

// LookupClient gives the client of an id; false where there is none.
func LookupClient(id string) (Client, bool) {
	for _, c := range clients() {
		if c.ID == id {
			return c, true
		}
	}
	return Client{}, false
}

// Path is the client's user-level configuration file, whether it is there or not. Without a home it is relative, and
// of no use; the error of PlanConnect says so.
func (c Client) Path(o Options) string {
	at, err := placesOf(o)
	if err != nil {
		return ""
	}
	return c.path(at)
}

func (c Client) path(at places) string {
	files := c.files(at)
	for _, file := range files {
		if _, err := os.Lstat(file); err == nil {
			return file
		}
	}
	return files[0]
}

// at is the path of a server in the client's file.
func (c Client) at(name string) []string {
	return append(append([]string{}, c.member...), name)
}

// places are the directories that clients look in.
type places struct {
	goos         string
	home, config string
	lookup       func(string) (string, bool)
}

func placesOf(o Options) (places, error) {
	l, err := newLoader(o)
	if err != nil {
		return places{}, err
	}
	return places{l.OS, l.Home, l.Config, l.Lookup}, nil
}

// env gives a directory that a variable names; "" where it names none.
func (p places) env(name string) string {
	dir, _ := p.lookup(name)
	if !filepath.IsAbs(dir) {
		return ""
	}
	return dir
}

// support is where programs with windows keep their data.
func (p places) support() string {
	switch p.goos {
	case "darwin":
		return filepath.Join(p.home, "Library", "Application Support")
	case "windows":
		return p.roaming()
	}
	return p.config
}

func (p places) roaming() string {
	if dir := p.env("APPDATA"); dir != "" {
		return dir
	}
	return filepath.Join(p.home, "AppData", "Roaming")
}

func inHome(path string) func(places) []string {
	return func(p places) []string { return []string{filepath.Join(p.home, filepath.FromSlash(path))} }
}

// under is the file in the directory that a variable names, else in dir.
func (p places) under(variable, dir string, file ...string) []string {
	if named := p.env(variable); named != "" {
		dir = named
	}
	return []string{filepath.Join(append([]string{dir}, file...)...)}
}

func claudeCodeFiles(p places) []string { return p.under("CLAUDE_CONFIG_DIR", p.home, ".claude.json") }

func codexFiles(p places) []string {
	return p.under("CODEX_HOME", filepath.Join(p.home, ".codex"), "config.toml")
}

// geminiFiles: GEMINI_CLI_HOME stands for the home, not for the directory in it.
func geminiFiles(p places) []string {
	return p.under("GEMINI_CLI_HOME", p.home, ".gemini", "settings.json")
}

func crushFiles(p places) []string {
	return p.under("CRUSH_GLOBAL_CONFIG", filepath.Join(p.config, "crush"), "crush.json")
}

// claudeDesktopFiles: on Linux there is no program of the vendor's, and its builders disagree about the name.
func claudeDesktopFiles(p places) []string {
	const file = "claude_desktop_config.json"
	files := []string{filepath.Join(p.support(), "Claude", file)}
	if p.goos != "darwin" && p.goos != "windows" {
		files = append(files, filepath.Join(p.config, "claude", file))
	}
	return files
}

func vscodeFiles(p places) []string {
	return []string{filepath.Join(p.support(), "Code", "User", "mcp.json")}
}

func clineFiles(p places) []string {
	return []string{filepath.Join(p.support(), "Code", "User", "globalStorage", "saoudrizwan.claude-dev", "settings", "cline_mcp_settings.json")}
}

// opencodeFiles: it looks in ~/.config on every system.
func opencodeFiles(p places) []string {
	dir := filepath.Join(p.config, "opencode")
	return []string{filepath.Join(dir, "opencode.json"), filepath.Join(dir, "opencode.jsonc")}
}

func zedFiles(p places) []string {
	dir := filepath.Join(p.config, "zed")
	if p.goos == "windows" {
		dir = filepath.Join(p.roaming(), "Zed")
	}
	return []string{filepath.Join(dir, "settings.json")}
}

func gooseFiles(p places) []string {
	if root := p.env("GOOSE_PATH_ROOT"); root != "" {
		return []string{filepath.Join(root, "config", "config.yaml")}
	}
	if p.goos == "windows" {
		return []string{filepath.Join(p.roaming(), "Block", "goose", "config", "config.yaml")}
	}
	return []string{filepath.Join(p.config, "goose", "config.yaml")}
}

// stdioRow is the shape that most clients share. Its members are in the order in which they are written.
type stdioRow struct {
	Type    string            `json:"type,omitempty"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env,omitempty"`
}

func bareRow(e Entry) any { return stdioRow{"", e.Command, e.args(), e.env()} }

func typedRow(e Entry) any { return stdioRow{"stdio", e.Command, e.args(), e.env()} }

func clineRow(e Entry) any {
	return struct {
		stdioRow
		Disabled bool `json:"disabled"`
	}{stdioRow{"stdio", e.Command, e.args(), e.env()}, false}
}

func opencodeRow(e Entry) any {
	return struct {
		Type        string            `json:"type"`
		Command     []string          `json:"command"`
		Environment map[string]string `json:"environment,omitempty"`
		Enabled     bool              `json:"enabled"`
	}{"local", append([]string{e.Command}, e.Args...), e.env(), true}
}

// gooseRow: goose refuses an extension that lacks one of these. The timeout is in seconds.
func gooseRow(e Entry) any {
	envs := e.env()
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
	}{true, "stdio", ClientEntry, e.Command, e.args(), envs, []string{}, 300}
}

// args is never nil: the clients want a list.
func (e Entry) args() []string { return append([]string{}, e.Args...) }

func (e Entry) env() map[string]string {
	var env map[string]string
	for _, p := range e.Env {
		if env == nil {
			env = map[string]string{}
		}
		env[p.Name] = p.Value
	}
	return env
}

// rowJSON is our entry as JSON.
func (c Client) rowJSON(e Entry) (json.RawMessage, error) { return json.Marshal(c.row(e)) }
