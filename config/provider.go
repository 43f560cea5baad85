package config

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config/doc"
)

// A provider is a program, or a family of programs, whose files say which servers there are. Another one is another row
// of the table, with the shape of its files where that is new.
type provider struct {
	name string
	// priority orders providers, the highest first; equal ones are in the table's order.
	priority int
	// places are the provider's files, the first to count first.
	places []place
}

// A place is where a file is looked for, with slashes.
type place struct {
	root  root
	path  string
	shape *shape
}

// A root is a directory that paths start at, and says whose files are in it.
type root uint8

const (
	projectRoot root = iota
	configRoot       // $XDG_CONFIG_HOME
	homeRoot
)

// providers is the table.
func providers() []provider {
	all := []provider{
		{"native", 100, []place{
			{projectRoot, ".drawbridge/mcp.json", &nativeJSON},
			{projectRoot, ".drawbridge/drawbridge.toml", &nativeTOML},
			{configRoot, "drawbridge/mcp.json", &nativeJSON},
			{configRoot, settingsPath, &nativeTOML},
			{homeRoot, ".drawbridge/agent/mcp.json", &nativeJSON},
			{homeRoot, ".drawbridge/agent/mcp-servers.json", &nativeJSON},
		}},
	}
	slices.SortStableFunc(all, func(a, b provider) int { return b.priority - a.priority })
	return all
}

// settingsPath is where settings are read from, under the configuration directory.
const settingsPath = "drawbridge/drawbridge.toml"

// A shape says how a kind of file holds its rows.
type shape struct {
	parse func([]byte) (doc.Node, error)
	// lists are the paths of the members that hold rows, as an array or as an object.
	lists [][]string
	// name is the member that names a row of an array.
	name string
	// settings says that what else is in the file are settings.
	settings bool
}

// The shapes of the native family.
var (
	nativeJSON = shape{parse: doc.ParseJSON, lists: [][]string{{"servers"}, {"mcpServers"}}, name: "name"}
	nativeTOML = shape{parse: doc.ParseTOML, lists: [][]string{{"mcp", "servers"}}, name: "id", settings: true}
)

// shapeOf is the shape of a file that a person named.
func shapeOf(path string) *shape {
	if strings.EqualFold(filepath.Ext(path), ".toml") {
		return &nativeTOML
	}
	return &nativeJSON
}

// rows finds the rows of a file, and what a person should know about how they are held.
func (s *shape) rows(root doc.Node) (rows []row, problems []*doc.Error) {
	found := false
	for _, path := range s.lists {
		for _, m := range root.All(path...) {
			found = true
			if m.Value.Kind != doc.Table && m.Value.Kind != doc.List {
				problems = append(problems, doc.Wrong(m.Line, "%q must be an array or an object of servers", strings.Join(path, ".")))
			}
			for _, server := range m.Value.Members {
				rows = append(rows, row{name: server.Name, line: server.Line, value: server.Value})
			}
			for _, server := range m.Value.Items {
				m, _ := server.Find(s.name)
				name, _ := m.Value.Word()
				rows = append(rows, row{name: name, line: server.Line, value: server, nameKey: s.name})
			}
		}
	}
	return rows, append(problems, s.strays(root, found)...)
}

// maxStrays is how many top-level members are looked at for a mistake.
const maxStrays = 1000

// strays finds top-level members of a JSON file that look like a mistake. Other members are none of our business: the
// file may belong to another program too.
func (s *shape) strays(root doc.Node, found bool) (problems []*doc.Error) {
	if s.settings {
		return nil
	}
	var known []string
	for _, path := range s.lists {
		known = append(known, path[0])
	}
	for _, m := range root.Members[:min(len(root.Members), maxStrays)] {
		if hint := doc.DidYouMean(m.Name, known); hint != "" && !slices.Contains(known, m.Name) {
			problems = append(problems, doc.Wrong(m.Line, "unknown member %q%s", m.Name, hint))
		}
	}
	if !found && len(problems) == 0 {
		problems = append(problems, doc.Wrong(0, "there are no servers here: the file has no member %s", doc.Choice(known)))
	}
	return problems
}
