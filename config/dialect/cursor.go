package dialect

import "github.com/drawbridge-mcp/drawbridge/config/doc"

func cursor() Provider {
	json := &Shape{parse: doc.ParseJSON, rows: at([]string{"mcpServers"}), tongue: &tongue{
		title: "Cursor", text: editor, fields: common(
			field{"envFile", left(noEnvFile)}, field{"auth", signIn(field{"CLIENT_ID", auth("client_id")},
				field{"CLIENT_SECRET", auth("client_secret")}, field{"scopes", auth("scopes")})}, field{"autoApprove", ignored},
			field{"alwaysAllow", ignored}, field{"icon", ignored},
		),
	}}
	return Provider{Name: "cursor", Title: "Cursor", Priority: 50, Places: []Place{
		{Root: Project, Path: ".cursor/mcp.json", Shape: json},
		{Root: Home, Path: ".cursor/mcp.json", Shape: json},
	}}
}
