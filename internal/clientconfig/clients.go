package clientconfig

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// A ServerEntry is a command with which a client starts a stdio server.
type ServerEntry struct {
	Name, Command string
	Args          []string
	Env           map[string]string
}

// A Client is a program that can use Drawbridge as one of its MCP servers.
type Client struct {
	// ID is the client's name in "drawbridge connect". Title is the name for people.
	ID, Title string
	// Format is the format of the client's file. ServersPath is the path of the object that maps names to servers.
	Format      configfile.Format
	ServersPath []string
	// configPaths returns the possible paths of the user-level configuration file. The first file that exists is used,
	// otherwise the first path.
	configPaths func(ClientDirs) []string
	// entryShape returns a value whose JSON is the given entry in the form of the client's file.
	entryShape func(ServerEntry) any
}

// Clients returns all clients. The form of an entry is the one that the client's own "mcp add" command writes, or that
// its documentation shows.
func Clients() []Client {
	servers := []string{"mcpServers"}
	return []Client{
		{"claude-code", "Claude Code", configfile.JSON, servers, claudeCodeFiles, typedEntry},
		{"claude-desktop", "Claude Desktop", configfile.JSON, servers, claudeDesktopFiles, untypedEntry},
		{"cursor", "Cursor", configfile.JSON, servers, fileInHome(".cursor/mcp.json"), typedEntry},
		{"vscode", "VS Code", configfile.JSON, []string{"servers"}, vscodeFiles, typedEntry},
		{"windsurf", "Windsurf", configfile.JSON, servers, fileInHome(".codeium/windsurf/mcp_config.json"),
			untypedEntry},
		{"codex", "Codex", configfile.TOML, []string{"mcp_servers"}, codexFiles, untypedEntry},
		{"gemini", "Gemini CLI", configfile.JSON, servers, geminiFiles, untypedEntry},
		{"opencode", "opencode", configfile.JSON, []string{"mcp"}, opencodeFiles, opencodeEntry},
		{"zed", "Zed", configfile.JSON, []string{"context_servers"}, zedFiles, untypedEntry},
		{"crush", "Crush", configfile.JSON, []string{"mcp"}, crushFiles, typedEntry},
		{"goose", "goose", configfile.YAML, []string{"extensions"}, gooseFiles, gooseEntry},
		{"cline", "Cline", configfile.JSON, servers, clineFiles, clineEntry},
	}
}

// ConfigPath returns the path of the client's user-level configuration file: the first possible path that exists,
// otherwise the first possible path.
func (c Client) ConfigPath(at ClientDirs) string {
	files := c.configPaths(at)
	for _, file := range files {
		if _, err := os.Lstat(file); err == nil {
			return file
		}
	}
	return files[0]
}

// ClientDirs are the base directories of clients' files.
type ClientDirs struct {
	// GOOS is the operating system. Home and Config are the home and the configuration directory.
	GOOS, Home, Config string
	// Lookup returns the value of an environment variable, and reports whether the variable is set.
	Lookup func(string) (string, bool)
}

// variableDir returns the directory that an environment variable contains; "" if its value is not an absolute path.
func (p ClientDirs) variableDir(name string) string {
	dir, _ := p.Lookup(name)
	if !filepath.IsAbs(dir) {
		return ""
	}
	return dir
}

// appSupportDir returns the directory in which desktop programs store their data.
func (p ClientDirs) appSupportDir() string {
	switch p.GOOS {
	case "darwin":
		return filepath.Join(p.Home, "Library", "Application Support")
	case "windows":
		return p.roamingDir()
	}
	return p.Config
}

func (p ClientDirs) roamingDir() string {
	if dir := p.variableDir("APPDATA"); dir != "" {
		return dir
	}
	return filepath.Join(p.Home, "AppData", "Roaming")
}

func fileInHome(path string) func(ClientDirs) []string {
	return func(p ClientDirs) []string { return []string{filepath.Join(p.Home, filepath.FromSlash(path))} }
}

// fileIn returns the path of a file in the directory that an environment variable contains. If the variable contains no
// absolute path, the file is in dir.
func (p ClientDirs) fileIn(variable, dir string, file ...string) []string {
	if named := p.variableDir(variable); named != "" {
		dir = named
	}
	return []string{filepath.Join(append([]string{dir}, file...)...)}
}

func claudeCodeFiles(p ClientDirs) []string {
	return p.fileIn("CLAUDE_CONFIG_DIR", p.Home, ".claude.json")
}

func codexFiles(p ClientDirs) []string {
	return p.fileIn("CODEX_HOME", filepath.Join(p.Home, ".codex"), "config.toml")
}

// geminiFiles returns the file of Gemini CLI. If GEMINI_CLI_HOME is set, the directory .gemini is in that directory,
// and not in the home directory.
func geminiFiles(p ClientDirs) []string {
	return p.fileIn("GEMINI_CLI_HOME", p.Home, ".gemini", "settings.json")
}

func crushFiles(p ClientDirs) []string {
	return p.fileIn("CRUSH_GLOBAL_CONFIG", filepath.Join(p.Config, "crush"), "crush.json")
}

// claudeDesktopFiles returns the possible files of Claude Desktop. On Linux there are several, because the vendor
// provides no program for Linux and unofficial builds use different names.
func claudeDesktopFiles(p ClientDirs) []string {
	const file = "claude_desktop_config.json"
	files := []string{filepath.Join(p.appSupportDir(), "Claude", file)}
	if p.GOOS != "darwin" && p.GOOS != "windows" {
		files = append(files, filepath.Join(p.Config, "claude", file))
	}
	return files
}

func vscodeFiles(p ClientDirs) []string {
	return []string{filepath.Join(p.appSupportDir(), "Code", "User", "mcp.json")}
}

func clineFiles(p ClientDirs) []string {
	return []string{filepath.Join(p.appSupportDir(), "Code", "User", "globalStorage", "saoudrizwan.claude-dev",
		"settings", "cline_mcp_settings.json")}
}

// opencodeFiles returns the possible files of opencode, which are in the configuration directory on every system.
func opencodeFiles(p ClientDirs) []string {
	dir := filepath.Join(p.Config, "opencode")
	return []string{filepath.Join(dir, "opencode.json"), filepath.Join(dir, "opencode.jsonc")}
}

func zedFiles(p ClientDirs) []string {
	dir := filepath.Join(p.Config, "zed")
	if p.GOOS == "windows" {
		dir = filepath.Join(p.roamingDir(), "Zed")
	}
	return []string{filepath.Join(dir, "settings.json")}
}

func gooseFiles(p ClientDirs) []string {
	if root := p.variableDir("GOOSE_PATH_ROOT"); root != "" {
		return []string{filepath.Join(root, "config", "config.yaml")}
	}
	if p.GOOS == "windows" {
		return []string{filepath.Join(p.roamingDir(), "Block", "goose", "config", "config.yaml")}
	}
	return []string{filepath.Join(p.Config, "goose", "config.yaml")}
}

// A stdioEntry is the form of an entry that most clients share. Its members are written in this order.
type stdioEntry struct {
	Type    string            `json:"type,omitempty"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env,omitempty"`
}

func untypedEntry(e ServerEntry) any { return stdioEntry{"", e.Command, e.argList(), e.Env} }

func typedEntry(e ServerEntry) any { return stdioEntry{"stdio", e.Command, e.argList(), e.Env} }

func clineEntry(e ServerEntry) any {
	return struct {
		stdioEntry
		Disabled bool `json:"disabled"`
	}{stdioEntry{"stdio", e.Command, e.argList(), e.Env}, false}
}

func opencodeEntry(e ServerEntry) any {
	return struct {
		Type        string            `json:"type"`
		Command     []string          `json:"command"`
		Environment map[string]string `json:"environment,omitempty"`
		Enabled     bool              `json:"enabled"`
	}{"local", append([]string{e.Command}, e.Args...), e.Env, true}
}

// gooseEntry returns an entry for goose. goose rejects an extension in which one of these members is missing. The
// timeout is in seconds.
func gooseEntry(e ServerEntry) any {
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
	}{true, "stdio", e.Name, e.Command, e.argList(), envs, []string{}, 300}
}

// argList returns the arguments as a list that is not nil, because the clients require a list.
func (e ServerEntry) argList() []string { return append([]string{}, e.Args...) }

// EntryJSON returns the entry as JSON in the form of the client's file.
func (c Client) EntryJSON(e ServerEntry) (json.RawMessage, error) {
	return json.Marshal(c.entryShape(e))
}
