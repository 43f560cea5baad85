package clientconfig

import (
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// indusProvider returns the provider for a family of programs with files in .indusvx, which do not expand variables.
func indusProvider() Provider {
	json := &Dialect{parse: configfile.ParseJSON, findRows: rowsAtPaths([]string{"servers"}, []string{"mcpServers"}),
		grammar: &rowGrammar{
			title: "indus", convertText: literalText,
			fields: commonMembers(memberRule{"timeout", copyVerbatim("timeout")},
				memberRule{"transport", convertTransport}),
		}}
	return Provider{Name: "indus", Title: "indus (.indusvx)", Priority: 90, Locations: []FileLocation{
		{Root: ProjectRoot, Path: ".indusvx/mcp.json", Shape: json},
		{Root: ConfigRoot, Path: "indusvx/mcp.json", Shape: json},
		{Root: HomeRoot, Path: ".indusvx/agent/mcp.json", Shape: json},
		{Root: HomeRoot, Path: ".indusvx/agent/mcp-servers.json", Shape: json},
	}}
}
