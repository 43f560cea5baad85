package dialect

import "github.com/drawbridge-mcp/drawbridge/config/doc"

// zed keeps servers among its settings, as JSON with comments. Those that its extensions bring are not written there.
func zed() Provider {
	json := &Shape{parse: doc.ParseJSON, tongue: &tongue{
		title: "Zed", text: literal, fields: common(
			field{"timeout", seconds}, field{"source", ignored}, field{"remote", ignored},
			field{"settings", left("they are for an extension of Zed")}, field{"oauth", signIn(
				field{"client_id", auth("client_id")}, field{"client_secret", auth("client_secret")})},
		),
	}}
	json.rows = func(root doc.Node, _ string) (rows []Row, _ []*doc.Error) {
		for _, row := range held(root, "name", []string{"context_servers"}) {
			if isRow(row.Value) || row.Value.Kind != doc.Table || hasTable(row.Value, "command") {
				row.Value = zedCommand(row.Value)
				rows = append(rows, row)
			}
		}
		return rows, nil
	}
	return Provider{Name: "zed", Title: "Zed", Priority: 30, Places: []Place{
		{Root: Project, Path: ".zed/settings.json", Shape: json},
		{Root: Config, Path: "zed/settings.json", Shape: json},
		{Root: AppData, Path: "Zed/settings.json", OS: "windows", Shape: json},
	}}
}

func hasTable(v doc.Node, name string) bool {
	m, ok := v.Find(name)
	return ok && m.Value.Kind == doc.Table
}

// zedCommand takes the older form apart: a command that is an object of path, args and env.
func zedCommand(row doc.Node) doc.Node {
	if !hasTable(row, "command") {
		return row
	}
	flat := row
	flat.Members = nil
	for _, m := range row.Members {
		if m.Name != "command" {
			flat.Members = append(flat.Members, m)
			continue
		}
		for _, inner := range m.Value.Members {
			if inner.Name == "path" {
				inner.Name = "command"
			}
			flat.Members = append(flat.Members, inner)
		}
	}
	return flat
}
