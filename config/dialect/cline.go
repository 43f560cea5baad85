package dialect

import "github.com/drawbridge-mcp/drawbridge/config/doc"

// cline keeps its file with VS Code's, and that of its command line in the home.
func cline() Provider {
	json := &Shape{parse: doc.ParseJSON, rows: at([]string{"mcpServers"}), tongue: &tongue{
		title: "Cline", text: editor, fields: common(
			field{"timeout", seconds}, field{"transportType", transport},
			field{"autoApprove", ignored}, field{"alwaysAllow", ignored},
		),
	}}
	const file = "cline_mcp_settings.json"
	places := editorPlaces("Code/User/globalStorage/saoudrizwan.claude-dev/settings/"+file, json)
	return Provider{Name: "cline", Title: "Cline", Priority: 40,
		Places: append(places, Place{Root: Home, Path: ".cline/data/settings/" + file, Shape: json})}
}
