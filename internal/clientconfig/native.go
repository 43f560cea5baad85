package clientconfig

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// SettingsPath is the path of the settings file, relative to the configuration directory.
const SettingsPath = "drawbridge/drawbridge.toml"

func nativeProvider() Provider {
	return Provider{Name: "native", Title: "Drawbridge", Priority: 100, Locations: []FileLocation{
		{Root: ProjectRoot, Path: ".drawbridge/mcp.json", Shape: nativeJSONDialect()},
		{Root: ProjectRoot, Path: ".drawbridge/drawbridge.toml", Shape: nativeTOMLDialect()},
		{Root: ConfigRoot, Path: "drawbridge/mcp.json", Shape: nativeJSONDialect()},
		{Root: ConfigRoot, Path: SettingsPath, Shape: nativeTOMLDialect()},
		{Root: HomeRoot, Path: ".drawbridge/agent/mcp.json", Shape: nativeJSONDialect()},
		{Root: HomeRoot, Path: ".drawbridge/agent/mcp-servers.json", Shape: nativeJSONDialect()},
	}}
}

func nativeJSONDialect() *Dialect {
	return &Dialect{Native: true, parse: configfile.ParseJSON, findRows: nativeRows}
}

func nativeTOMLDialect() *Dialect {
	return &Dialect{Native: true, Settings: true, parse: configfile.ParseTOML,
		findRows: func(root configfile.Node, _ string) ([]ServerRow, []*configfile.Error) {
			path := []string{"mcp", "servers"}
			return rowsAt(root, "id", path), invalidRowLists(root, path)
		}}
}

// NativeDialect returns the dialect of a file that a person named: Drawbridge's format, in TOML or JSON by the
// extension.
func NativeDialect(path string) *Dialect {
	if strings.EqualFold(filepath.Ext(path), ".toml") {
		return nativeTOMLDialect()
	}
	return nativeJSONDialect()
}

func nativeRows(root configfile.Node, _ string) ([]ServerRow, []*configfile.Error) {
	paths := [][]string{{"servers"}, {"mcpServers"}}
	return rowsAt(root, "name", paths...), append(invalidRowLists(root, paths...), misspelledMembers(root)...)
}

// invalidRowLists returns an error for each member at paths that must contain rows but is neither a table nor a list.
func invalidRowLists(root configfile.Node, paths ...[]string) (problems []*configfile.Error) {
	for _, path := range paths {
		for _, m := range root.FindAll(path...) {
			if m.Value.Kind != configfile.Table && m.Value.Kind != configfile.List {
				problems = append(problems, configfile.ErrorAt(m.Line, "%q must be an array or an object of servers",
					strings.Join(path, ".")))
			}
		}
	}
	return problems
}

// maxTopMembers is the maximum number of top-level members that are checked for misspelled names.
const maxTopMembers = 1000

// misspelledMembers returns an error for each top-level member of a Drawbridge JSON file whose name seems misspelled.
// If there is none and the file has no known member, it returns one error. Other unknown members are allowed, because
// another program may use the file too.
func misspelledMembers(root configfile.Node) (problems []*configfile.Error) {
	rows := []string{"servers", "mcpServers"}
	known := append(slices.Clone(rows), "disabledServers")
	found := false
	for _, m := range root.Members[:min(len(root.Members), maxTopMembers)] {
		if slices.Contains(known, m.Name) {
			found = true
			continue
		}
		if hint := configfile.DidYouMean(m.Name, known); hint != "" {
			problems = append(problems, configfile.ErrorAt(m.Line, "unknown member %q%s", m.Name, hint))
		}
	}
	if !found && len(problems) == 0 {
		problems = append(problems, configfile.ErrorAt(0, "there are no servers here: the file has no member %s",
			configfile.JoinOr(rows)))
	}
	return problems
}

// DisabledServers returns the names of the servers that a Drawbridge file disables. The servers may be defined in any
// file.
func DisabledServers(root configfile.Node) map[string]bool { return textSetAt(root, "disabledServers") }
