package dialect

import "github.com/drawbridge-mcp/drawbridge/config/doc"

// vscode keeps servers and the questions they need in mcp.json, and in older days both under mcp in its settings.
func vscode() Provider {
	json := &Shape{parse: doc.ParseJSON, rows: vscodeRows, tongue: &tongue{
		title: "VS Code", text: editor, fields: common(
			field{"envFile", left(noEnvFile)}, field{"oauth", signIn(camelCase()...)}, field{"transport", transport},
			field{"sandboxEnabled", left(noSandbox)}, field{"sandbox", left(noSandbox)},
			field{"dev", ignored}, field{"gallery", ignored}, field{"version", ignored},
		),
	}}
	p := Provider{Name: "vscode", Title: "VS Code", Priority: 20, Places: []Place{
		{Root: Project, Path: ".vscode/mcp.json", Shape: json},
		{Root: Project, Path: ".vscode/settings.json", Shape: json},
	}}
	for _, file := range []string{"mcp.json", "settings.json"} {
		p.Places = append(p.Places, editorPlaces("Code/User/"+file, json)...)
	}
	return p
}

// editorPlaces is where VS Code keeps a file of the person's own, on each system.
func editorPlaces(path string, s *Shape) []Place {
	return []Place{
		{Root: Config, Path: path, OS: "linux", Shape: s},
		{Root: Home, Path: "Library/Application Support/" + path, OS: "darwin", Shape: s},
		{Root: AppData, Path: path, OS: "windows", Shape: s},
	}
}

func vscodeRows(root doc.Node, _ string) (rows []Row, _ []*doc.Error) {
	tops := []doc.Node{root}
	for _, m := range root.All("mcp") {
		tops = append(tops, m.Value)
	}
	for _, top := range tops {
		inputs := defaults(top)
		found := held(top, "name", []string{"servers"})
		for i := range found {
			found[i].inputs = inputs
		}
		rows = append(rows, found...)
	}
	return rows, nil
}

// defaults has the default of each question, by its id.
func defaults(top doc.Node) map[string]string {
	all := map[string]string{}
	for _, m := range top.All("inputs") {
		for _, in := range m.Value.Items {
			id, _ := in.Find("id")
			def, _ := in.Find("default")
			if name, ok := id.Value.Word(); ok {
				all[name], _ = def.Value.Word()
			}
		}
	}
	return all
}
