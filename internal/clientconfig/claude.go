package clientconfig

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// claudeCodeProvider returns the files of Claude Code: ~/.claude.json has the person's servers, and those of single
// directories under their paths. The .mcp.json of a project, which Claude Code reads too, is in mcpJSONProvider.
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

// mcpJSONProvider returns the files that many programs read at the root of a project. They come after the files of
// single programs.
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

// convertClaudeTimeout converts a timeout in milliseconds. Claude Code ignores values below 1000.
func convertClaudeTimeout(c *rowConverter, m configfile.Member) {
	if ms, err := strconv.ParseFloat(m.Value.Text, 64); err == nil && ms < 1000 {
		c.addNote(m.Line, "%q was left out: Claude Code ignores fewer than 1000 milliseconds too", m.Name)
		return
	}
	c.setMember("timeout", m.Line, m.Value)
}

// rowsUnderEitherName reads the rows under both names that programs use for the member in a shared file.
func rowsUnderEitherName(root configfile.Node, _ string) ([]ServerRow, []*configfile.Error) {
	return rowsAt(root, "name", []string{"mcpServers"}, []string{"servers"}), nil
}

// claudeRows returns the person's rows for this directory, which have precedence, and those for all directories.
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

// claudeDesktopProvider returns the files of Claude Desktop, which does not expand variables.
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
