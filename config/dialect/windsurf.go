package dialect

import "github.com/drawbridge-mcp/drawbridge/config/doc"

// windsurf calls an address serverUrl; in editors of other makers its file is elsewhere.
func windsurf() Provider {
	json := &Shape{parse: doc.ParseJSON, rows: at([]string{"mcpServers"}), tongue: &tongue{
		title: "Windsurf", text: editor, fields: common(
			field{"serverUrl", same("url")}, field{"disabledTools", left(noDenyList)}, field{"alwaysAllow", ignored},
			field{"registry", ignored},
		),
	}}
	return Provider{Name: "windsurf", Title: "Windsurf", Priority: 50, Places: []Place{
		{Root: Project, Path: ".windsurf/mcp_config.json", Shape: json},
		{Root: Home, Path: ".codeium/windsurf/mcp_config.json", Shape: json},
		{Root: Home, Path: ".codeium/mcp_config.json", Shape: json},
	}}
}
