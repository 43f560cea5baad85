package clientconfig

import (
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// opencodeProvider returns the provider for opencode. Its files have one of three forms: servers are in mcp, in
// mcp.servers, or directly in the root object.
func opencodeProvider() Provider {
	json := &Dialect{parse: configfile.ParseJSON, findRows: opencodeRows, grammar: &rowGrammar{
		title: "opencode", convertText: opencodeText, fields: commonMembers(
			memberRule{"environment", convertPairs("env")}, memberRule{"timeout", copyVerbatim("timeout")},
			memberRule{"oauth",
				convertAuth(camelCaseMembers(memberRule{"callbackPort", copyAuthAs("callback_port")})...)},
		),
	}}
	for i, f := range json.grammar.fields {
		switch f.name {
		case "type":
			json.grammar.fields[i].convert = convertLocalOrRemote
		case "env":
			json.grammar.fields[i].convert = leaveOut(`opencode knows "environment" only`)
		}
	}
	bare := *json
	bare.findRows = rowsAtTop
	return Provider{Name: "opencode", Title: "opencode", Priority: 55, Locations: []FileLocation{
		{Root: ProjectRoot, Path: "opencode.json", Shape: json},
		{Root: ProjectRoot, Path: "opencode.jsonc", Shape: json},
		{Root: ProjectRoot, Path: ".opencode/opencode.json", Shape: json},
		{Root: ProjectRoot, Path: ".opencode/opencode.jsonc", Shape: json},
		{Root: ProjectRoot, Path: ".agents/mcp.json", Shape: &bare},
		{Root: ConfigRoot, Path: "opencode/opencode.json", Shape: json},
		{Root: ConfigRoot, Path: "opencode/opencode.jsonc", Shape: json},
		{Root: ConfigRoot, Path: "opencode/config.json", Shape: json},
		{Root: HomeRoot, Path: ".agents/mcp.json", Shape: &bare},
	}}
}

// looksLikeServer reports whether a value seems to be a server, and not an object that maps names to servers.
func looksLikeServer(v configfile.Node) bool {
	for _, name := range []string{"command", "url", "type"} {
		if m, ok := v.Find(name); ok && m.Value.Kind != configfile.Table {
			return true
		}
	}
	return false
}

func opencodeRows(root configfile.Node, _ string) (rows []ServerRow, _ []*configfile.Error) {
	for _, row := range rowsAt(root, "name", []string{"mcp"}) {
		if row.Name == "servers" && !looksLikeServer(row.Value) {
			for _, m := range row.Value.Members {
				rows = append(rows, ServerRow{Name: m.Name, Line: m.Line, Value: m.Value})
			}
			continue
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func rowsAtTop(root configfile.Node, dir string) (rows []ServerRow, _ []*configfile.Error) {
	rows, _ = opencodeRows(root, dir)
	rows = append(rows, rowsAt(root, "name", []string{"mcpServers"})...)
	for _, m := range root.Members {
		if looksLikeServer(m.Value) {
			rows = append(rows, ServerRow{Name: m.Name, Line: m.Line, Value: m.Value})
		}
	}
	return rows, nil
}
