package clientconfig

import (
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

func cursorProvider() Provider {
	json := &Dialect{parse: configfile.ParseJSON, findRows: rowsAtPaths([]string{"mcpServers"}), grammar: &rowGrammar{
		title: "Cursor", convertText: editorText, fields: commonMembers(
			memberRule{"envFile", leaveOut(adviceEnvFile)},
			memberRule{"auth", convertAuth(memberRule{"CLIENT_ID", copyAuthAs("client_id")},
				memberRule{"CLIENT_SECRET", copyAuthAs("client_secret")}, memberRule{"scopes", copyAuthAs("scopes")})},
			memberRule{"autoApprove", ignoreMember},
			memberRule{"alwaysAllow", ignoreMember}, memberRule{"icon", ignoreMember},
		),
	}}
	return Provider{Name: "cursor", Title: "Cursor", Priority: 50, Locations: []FileLocation{
		{Root: ProjectRoot, Path: ".cursor/mcp.json", Shape: json},
		{Root: HomeRoot, Path: ".cursor/mcp.json", Shape: json},
	}}
}
