package clientconfig

import (
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// clineProvider returns the provider for Cline. The extension's file is in the directory of VS Code; the file of
// Cline's command-line program is in the home directory.
func clineProvider() Provider {
	json := &Dialect{parse: configfile.ParseJSON, findRows: rowsAtPaths([]string{"mcpServers"}), grammar: &rowGrammar{
		title: "Cline", convertText: editorText, fields: commonMembers(
			memberRule{"timeout", convertSecondsTimeout}, memberRule{"transportType", convertTransport},
			memberRule{"autoApprove", ignoreMember}, memberRule{"alwaysAllow", ignoreMember},
		),
	}}
	const file = "cline_mcp_settings.json"
	places := vscodeLocations("Code/User/globalStorage/saoudrizwan.claude-dev/settings/"+file, json)
	return Provider{Name: "cline", Title: "Cline", Priority: 40,
		Locations: append(places, FileLocation{Root: HomeRoot, Path: ".cline/data/settings/" + file, Shape: json})}
}
