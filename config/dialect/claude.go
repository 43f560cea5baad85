package dialect

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/drawbridge-mcp/drawbridge/config/doc"
)

// claudeCode keeps the person's servers in ~/.claude.json, those of one directory under its path there, and those of a
// project in .mcp.json.
func claudeCode() Provider {
	words := claudeWords("Claude Code")
	return Provider{Name: "claude-code", Title: "Claude Code", Priority: 80, Places: []Place{
		{Root: Project, Path: ".mcp.json", Shape: &Shape{parse: doc.ParseJSON, rows: anyMember, tongue: words}},
		{Root: Home, Path: ".claude.json", Variable: "CLAUDE_CONFIG_DIR", Base: ".claude.json",
			Shape: &Shape{parse: doc.ParseJSON, rows: claudeRows, tongue: words}},
	}}
}

// mcpJSON is the file that many programs read at the root of a project.
func mcpJSON() Provider {
	json := &Shape{parse: doc.ParseJSON, rows: anyMember, tongue: claudeWords("its program")}
	return Provider{Name: "mcp-json", Title: "mcp.json", Priority: 5, Places: []Place{
		{Root: Project, Path: "mcp.json", Shape: json},
		{Root: Project, Path: ".mcp.json", Shape: json},
	}}
}

func claudeWords(title string) *tongue {
	return &tongue{title: title, text: ours, fields: common(
		field{"timeout", claudeTimeout}, field{"request_timeout_ms", claudeTimeout},
		field{"headersHelper", left(noHelper)}, field{"oauth", signIn(camelCase(
			field{"callbackPort", callbackPort}, field{"authServerMetadataUrl", metadata})...)}, field{"envFile", left(noEnvFile)},
		field{"alwaysLoad", ignored}, field{"scope", ignored},
	)}
}

// claudeTimeout carries milliseconds. Claude Code ignores fewer than 1000 of them.
func claudeTimeout(c *carrier, m doc.Member) {
	if ms, err := strconv.ParseFloat(m.Value.Text, 64); err == nil && ms < 1000 {
		c.note(m.Line, "%q was left out: Claude Code ignores fewer than 1000 milliseconds too", m.Name)
		return
	}
	c.put("timeout", m.Line, m.Value)
}

// anyMember takes both names that programs give the member: two of them share the file.
func anyMember(root doc.Node, _ string) ([]Row, []*doc.Error) {
	return held(root, "name", []string{"mcpServers"}, []string{"servers"}), nil
}

// claudeRows gives what the person wrote for this directory, which counts first, and what they wrote for all.
func claudeRows(root doc.Node, dir string) ([]Row, []*doc.Error) {
	var local []Row
	off := map[string]bool{}
	for _, projects := range root.All("projects") {
		for _, p := range projects.Value.Members {
			if dir == "" || filepath.Clean(filepath.FromSlash(p.Name)) != dir {
				continue
			}
			local = append(local, held(p.Value, "name", []string{"mcpServers"})...)
			maps.Copy(off, names(p.Value, "disabledMcpServers"))
		}
	}
	for i := range local {
		local[i].Local = true
	}
	turnOff(local, off)
	return slices.Concat(local, held(root, "name", []string{"mcpServers"})), nil
}

// claudeDesktop puts nothing into its texts.
func claudeDesktop() Provider {
	json := &Shape{parse: doc.ParseJSON, rows: at([]string{"mcpServers"}), tongue: &tongue{
		title: "Claude Desktop", text: literal, fields: common(),
	}}
	const file = "claude_desktop_config.json"
	return Provider{Name: "claude-desktop", Title: "Claude Desktop", Priority: 45, Places: []Place{
		{Root: Config, Path: "Claude/" + file, OS: "linux", Shape: json},
		{Root: Config, Path: "claude/" + file, OS: "linux", Shape: json},
		{Root: Home, Path: "Library/Application Support/Claude/" + file, OS: "darwin", Shape: json},
		{Root: AppData, Path: "Claude/" + file, OS: "windows", Shape: json},
	}}
}
