package clientconfig

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// claudeCodeProvider returns the provider for Claude Code. The file ~/.claude.json contains the person's servers for
// all directories. Its member "projects" maps the path of a directory to the servers for this directory only. Claude
// Code also reads a project's .mcp.json, which belongs to mcpJSONProvider.
func claudeCodeProvider() Provider {
	const inDir = "CLAUDE_CONFIG_DIR"
	words := claudeGrammar("Claude Code")
	json := &Dialect{parse: configfile.ParseJSON, findRows: rowsUnderEitherName, grammar: words}
	return Provider{Name: "claude-code", Title: "Claude Code", Priority: 80, Locations: []FileLocation{
		{Root: ProjectRoot, Path: ".claude/mcp.json", Shape: json},
		{Root: ProjectRoot, Path: ".claude/.mcp.json", Shape: json},
		{Root: HomeRoot, Path: ".claude.json", Variable: inDir, FileInVariable: ".claude.json",
			Shape: &Dialect{parse: configfile.ParseJSON, findRows: claudeRows, grammar: words}},
		{Root: HomeRoot, Path: ".claude/mcp.json", Variable: inDir, FileInVariable: "mcp.json", Shape: json},
		{Root: HomeRoot, Path: ".claude/.mcp.json", Variable: inDir, FileInVariable: ".mcp.json", Shape: json},
	}}
}

// mcpJSONProvider returns the provider for mcp.json and .mcp.json at the root of a project, which many programs read.
// Files that only one program reads have precedence over these files.
func mcpJSONProvider() Provider {
	json := &Dialect{parse: configfile.ParseJSON, findRows: rowsUnderEitherName, grammar: claudeGrammar("its program")}
	return Provider{Name: "mcp-json", Title: "mcp.json", Priority: 5, Locations: []FileLocation{
		{Root: ProjectRoot, Path: "mcp.json", Shape: json},
		{Root: ProjectRoot, Path: ".mcp.json", Shape: json},
	}}
}

func claudeGrammar(title string) *rowGrammar {
	return &rowGrammar{title: title, convertText: nativeText, fields: commonMembers(
		memberRule{"timeout", convertClaudeTimeout}, memberRule{"request_timeout_ms", convertClaudeTimeout},
		memberRule{"headersHelper", leaveOut(adviceHeaderCommand)}, memberRule{"oauth", convertAuth(camelCaseMembers(
			memberRule{"callbackPort", convertCallbackPort}, memberRule{"authServerMetadataUrl",
				convertMetadataURL})...)}, memberRule{"envFile", leaveOut(adviceEnvFile)},
		memberRule{"alwaysLoad", ignoreMember}, memberRule{"scope", ignoreMember},
	)}
}

// convertClaudeTimeout converts a timeout in milliseconds. Values below 1000 are left out, as Claude Code ignores them.
func convertClaudeTimeout(c *rowConverter, m configfile.Member) {
	if ms, err := strconv.ParseFloat(m.Value.Text, 64); err == nil && ms < 1000 {
		c.addNote(m.Line, "%q was left out: Claude Code ignores fewer than 1000 milliseconds too", m.Name)
		return
	}
	c.setMember("timeout", m.Line, m.Value)
}

// rowsUnderEitherName returns the rows in the members mcpServers and servers. Programs use both names in a shared file.
func rowsUnderEitherName(root configfile.Node, _ string) ([]ServerRow, []*configfile.Error) {
	return rowsAt(root, "name", []string{"mcpServers"}, []string{"servers"}), nil
}

// claudeRows returns the rows for the directory dir, followed by the rows for all directories. Earlier rows have
// precedence.
func claudeRows(root configfile.Node, dir string) ([]ServerRow, []*configfile.Error) {
	var local []ServerRow
	off := map[string]bool{}
	for _, projects := range root.FindAll("projects") {
		for _, p := range projects.Value.Members {
			if dir == "" || filepath.Clean(filepath.FromSlash(p.Name)) != dir {
				continue
			}
			local = append(local, rowsAt(p.Value, "name", []string{"mcpServers"})...)
			maps.Copy(off, textSetAt(p.Value, "disabledMcpServers"))
		}
	}
	for i := range local {
		local[i].Local = true
	}
	markDisabled(local, off)
	return slices.Concat(local, rowsAt(root, "name", []string{"mcpServers"})), nil
}

// claudeDesktopProvider returns the provider for Claude Desktop, which does not expand variables.
func claudeDesktopProvider() Provider {
	json := &Dialect{parse: configfile.ParseJSON, findRows: rowsAtPaths([]string{"mcpServers"}), grammar: &rowGrammar{
		title: "Claude Desktop", convertText: literalText, fields: commonMembers(),
	}}
	const file = "claude_desktop_config.json"
	return Provider{Name: "claude-desktop", Title: "Claude Desktop", Priority: 45, Locations: []FileLocation{
		{Root: ConfigRoot, Path: "Claude/" + file, OS: "linux", Shape: json},
		{Root: ConfigRoot, Path: "claude/" + file, OS: "linux", Shape: json},
		{Root: HomeRoot, Path: "Library/Application Support/Claude/" + file, OS: "darwin", Shape: json},
		{Root: AppDataRoot, Path: "Claude/" + file, OS: "windows", Shape: json},
	}}
}
