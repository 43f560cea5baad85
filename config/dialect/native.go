package dialect

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config/doc"
)

// SettingsPath is where settings are read from, under the configuration directory.
const SettingsPath = "drawbridge/drawbridge.toml"

func native() Provider {
	return Provider{Name: "native", Title: "Drawbridge", Priority: 100, Places: []Place{
		{Root: Project, Path: ".drawbridge/mcp.json", Shape: nativeJSON()},
		{Root: Project, Path: ".drawbridge/drawbridge.toml", Shape: nativeTOML()},
		{Root: Config, Path: "drawbridge/mcp.json", Shape: nativeJSON()},
		{Root: Config, Path: SettingsPath, Shape: nativeTOML()},
		{Root: Home, Path: ".drawbridge/agent/mcp.json", Shape: nativeJSON()},
		{Root: Home, Path: ".drawbridge/agent/mcp-servers.json", Shape: nativeJSON()},
	}}
}

func nativeJSON() *Shape { return &Shape{Native: true, parse: doc.ParseJSON, rows: nativeRows} }

func nativeTOML() *Shape {
	return &Shape{Native: true, Settings: true, parse: doc.ParseTOML,
		rows: func(root doc.Node, _ string) ([]Row, []*doc.Error) {
			path := []string{"mcp", "servers"}
			return held(root, "id", path), noLists(root, path)
		}}
}

// Of is the shape of a file that a person named: our own.
func Of(path string) *Shape {
	if strings.EqualFold(filepath.Ext(path), ".toml") {
		return nativeTOML()
	}
	return nativeJSON()
}

func nativeRows(root doc.Node, _ string) ([]Row, []*doc.Error) {
	paths := [][]string{{"servers"}, {"mcpServers"}}
	return held(root, "name", paths...), append(noLists(root, paths...), strays(root)...)
}

// noLists finds members that should hold rows and cannot.
func noLists(root doc.Node, paths ...[]string) (problems []*doc.Error) {
	for _, path := range paths {
		for _, m := range root.All(path...) {
			if m.Value.Kind != doc.Table && m.Value.Kind != doc.List {
				problems = append(problems, doc.Wrong(m.Line, "%q must be an array or an object of servers", strings.Join(path, ".")))
			}
		}
	}
	return problems
}

// maxStrays is how many top-level members are looked at for a mistake.
const maxStrays = 1000

// strays finds top-level members of a native JSON file that look like a mistake. Other members are none of our business:
// the file may belong to another program too.
func strays(root doc.Node) (problems []*doc.Error) {
	rows := []string{"servers", "mcpServers"}
	known := append(slices.Clone(rows), "disabledServers")
	found := false
	for _, m := range root.Members[:min(len(root.Members), maxStrays)] {
		if slices.Contains(known, m.Name) {
			found = true
			continue
		}
		if hint := doc.DidYouMean(m.Name, known); hint != "" {
			problems = append(problems, doc.Wrong(m.Line, "unknown member %q%s", m.Name, hint))
		}
	}
	if !found && len(problems) == 0 {
		problems = append(problems, doc.Wrong(0, "there are no servers here: the file has no member %s", doc.Choice(rows)))
	}
	return problems
}

// Disabled names the servers that a native file turns off, whatever file they are in.
func Disabled(root doc.Node) map[string]bool { return names(root, "disabledServers") }
