package clientconfig

import (
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// zedProvider returns the provider for Zed. Servers are in Zed's settings. Servers of Zed's extensions are not
// returned, because the settings do not contain their commands.
func zedProvider() Provider {
	json := &Dialect{parse: configfile.ParseJSON, grammar: &rowGrammar{
		title: "Zed", convertText: literalText, fields: commonMembers(
			memberRule{"timeout", convertSecondsTimeout}, memberRule{"source", ignoreMember},
			memberRule{"remote", ignoreMember},
			memberRule{"settings", leaveOut("they are for an extension of Zed")}, memberRule{"oauth", convertAuth(
				memberRule{"client_id", copyAuthAs("client_id")}, memberRule{"client_secret",
					copyAuthAs("client_secret")})},
		),
	}}
	json.findRows = func(root configfile.Node, _ string) (rows []ServerRow, _ []*configfile.Error) {
		for _, row := range rowsAt(root, "name", []string{"context_servers"}) {
			if looksLikeServer(row.Value) || row.Value.Kind != configfile.Table || hasTable(row.Value, "command") {
				row.Value = flattenZedCommand(row.Value)
				rows = append(rows, row)
			}
		}
		return rows, nil
	}
	return Provider{Name: "zed", Title: "Zed", Priority: 30, Locations: []FileLocation{
		{Root: ProjectRoot, Path: ".zed/settings.json", Shape: json},
		{Root: ConfigRoot, Path: "zed/settings.json", Shape: json},
		{Root: AppDataRoot, Path: "Zed/settings.json", OS: "windows", Shape: json},
	}}
}

func hasTable(v configfile.Node, name string) bool {
	m, ok := v.Find(name)
	return ok && m.Value.Kind == configfile.Table
}

// flattenZedCommand returns the row with command, args and env as members of the row. In an older form of the file,
// command is an object that contains path, args and env.
func flattenZedCommand(row configfile.Node) configfile.Node {
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
