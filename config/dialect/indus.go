package dialect

import "github.com/drawbridge-mcp/drawbridge/config/doc"

// indus is the family of programs that keeps its files in .indusvx. They put no variables in.
func indus() Provider {
	json := &Shape{parse: doc.ParseJSON, rows: at([]string{"servers"}, []string{"mcpServers"}), tongue: &tongue{
		title: "indus", text: literal, fields: common(field{"timeout", raw("timeout")}, field{"transport", transport}),
	}}
	return Provider{Name: "indus", Title: "indus (.indusvx)", Priority: 90, Places: []Place{
		{Root: Project, Path: ".indusvx/mcp.json", Shape: json},
		{Root: Config, Path: "indusvx/mcp.json", Shape: json},
		{Root: Home, Path: ".indusvx/agent/mcp.json", Shape: json},
		{Root: Home, Path: ".indusvx/agent/mcp-servers.json", Shape: json},
	}}
}
