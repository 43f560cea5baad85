package clientconfig

import (
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// windsurfProvider returns the provider for Windsurf, whose rows have the URL in serverUrl. Other editors that include
// Windsurf use the second user-level file.
func windsurfProvider() Provider {
	json := &Dialect{parse: configfile.ParseJSON, findRows: rowsAtPaths([]string{"mcpServers"}), grammar: &rowGrammar{
		title: "Windsurf", convertText: editorText, fields: commonMembers(
			memberRule{"serverUrl", copyAs("url")}, memberRule{"disabledTools", leaveOut(adviceDenyList)},
			memberRule{"alwaysAllow", ignoreMember},
			memberRule{"registry", ignoreMember},
		),
	}}
	return Provider{Name: "windsurf", Title: "Windsurf", Priority: 50, Locations: []FileLocation{
		{Root: ProjectRoot, Path: ".windsurf/mcp_config.json", Shape: json},
		{Root: HomeRoot, Path: ".codeium/windsurf/mcp_config.json", Shape: json},
		{Root: HomeRoot, Path: ".codeium/mcp_config.json", Shape: json},
	}}
}
