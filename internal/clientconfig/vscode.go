package clientconfig

import (
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// vscodeProvider returns the provider for VS Code. Servers and their input prompts are in mcp.json; in older versions
// they are in the member mcp of the settings.
func vscodeProvider() Provider {
	json := &Dialect{parse: configfile.ParseJSON, findRows: vscodeRows, grammar: &rowGrammar{
		title: "VS Code", convertText: editorText, fields: commonMembers(
			memberRule{"envFile", leaveOut(adviceEnvFile)}, memberRule{"oauth", convertAuth(camelCaseMembers()...)},
			memberRule{"transport", convertTransport},
			memberRule{"sandboxEnabled", leaveOut(adviceSandbox)}, memberRule{"sandbox", leaveOut(adviceSandbox)},
			memberRule{"dev", ignoreMember}, memberRule{"gallery", ignoreMember}, memberRule{"version", ignoreMember},
		),
	}}
	p := Provider{Name: "vscode", Title: "VS Code", Priority: 20, Locations: []FileLocation{
		{Root: ProjectRoot, Path: ".vscode/mcp.json", Shape: json},
		{Root: ProjectRoot, Path: ".vscode/settings.json", Shape: json},
	}}
	for _, file := range []string{"mcp.json", "settings.json"} {
		p.Locations = append(p.Locations, vscodeLocations("Code/User/"+file, json)...)
	}
	return p
}

// vscodeLocations returns the locations of a user-level file of VS Code on each operating system.
func vscodeLocations(path string, s *Dialect) []FileLocation {
	return []FileLocation{
		{Root: ConfigRoot, Path: path, OS: "linux", Shape: s},
		{Root: HomeRoot, Path: "Library/Application Support/" + path, OS: "darwin", Shape: s},
		{Root: AppDataRoot, Path: path, OS: "windows", Shape: s},
	}
}

func vscodeRows(root configfile.Node, _ string) (rows []ServerRow, _ []*configfile.Error) {
	tops := []configfile.Node{root}
	for _, m := range root.FindAll("mcp") {
		tops = append(tops, m.Value)
	}
	for _, top := range tops {
		inputs := inputDefaults(top)
		found := rowsAt(top, "name", []string{"servers"})
		for i := range found {
			found[i].inputs = inputs
		}
		rows = append(rows, found...)
	}
	return rows, nil
}

// inputDefaults maps the id of each input prompt to its default.
func inputDefaults(top configfile.Node) map[string]string {
	all := map[string]string{}
	for _, m := range top.FindAll("inputs") {
		for _, in := range m.Value.Items {
			id, _ := in.Find("id")
			def, _ := in.Find("default")
			if name, ok := id.Value.TextValue(); ok {
				all[name], _ = def.Value.TextValue()
			}
		}
	}
	return all
}
