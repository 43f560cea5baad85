package dialect

import "github.com/drawbridge-mcp/drawbridge/config/doc"

// opencode keeps its settings as JSON with comments, in one of three shapes: a map under mcp, one under mcp.servers, or,
// in a file of servers only, the file itself.
func opencode() Provider {
	json := &Shape{parse: doc.ParseJSON, rows: opencodeRows, tongue: &tongue{
		title: "opencode", text: curly, fields: common(
			field{"environment", pairs("env")}, field{"timeout", raw("timeout")}, field{"oauth", signIn(camelCase(field{"callbackPort", auth("callback_port")})...)},
		),
	}}
	for i, f := range json.tongue.fields {
		switch f.name {
		case "type":
			json.tongue.fields[i].carry = either
		case "env":
			json.tongue.fields[i].carry = left(`opencode knows "environment" only`)
		}
	}
	bare := *json
	bare.rows = bareRows
	return Provider{Name: "opencode", Title: "opencode", Priority: 55, Places: []Place{
		{Root: Project, Path: "opencode.json", Shape: json},
		{Root: Project, Path: "opencode.jsonc", Shape: json},
		{Root: Project, Path: ".opencode/opencode.json", Shape: json},
		{Root: Project, Path: ".opencode/opencode.jsonc", Shape: json},
		{Root: Project, Path: ".agents/mcp.json", Shape: &bare},
		{Root: Config, Path: "opencode/opencode.json", Shape: json},
		{Root: Config, Path: "opencode/opencode.jsonc", Shape: json},
		{Root: Config, Path: "opencode/config.json", Shape: json},
		{Root: Home, Path: ".agents/mcp.json", Shape: &bare},
	}}
}

// isRow says whether a value looks like a server, and not like a map of them.
func isRow(v doc.Node) bool {
	for _, name := range []string{"command", "url", "type"} {
		if m, ok := v.Find(name); ok && m.Value.Kind != doc.Table {
			return true
		}
	}
	return false
}

func opencodeRows(root doc.Node, _ string) (rows []Row, _ []*doc.Error) {
	for _, row := range held(root, "name", []string{"mcp"}) {
		if row.Name == "servers" && !isRow(row.Value) {
			for _, m := range row.Value.Members {
				rows = append(rows, Row{Name: m.Name, Line: m.Line, Value: m.Value})
			}
			continue
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func bareRows(root doc.Node, dir string) (rows []Row, _ []*doc.Error) {
	rows, _ = opencodeRows(root, dir)
	rows = append(rows, held(root, "name", []string{"mcpServers"})...)
	for _, m := range root.Members {
		if isRow(m.Value) {
			rows = append(rows, Row{Name: m.Name, Line: m.Line, Value: m.Value})
		}
	}
	return rows, nil
}
