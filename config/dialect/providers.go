package dialect

import (
	"path/filepath"
	"slices"

	"github.com/drawbridge-mcp/drawbridge/config/doc"
)

// A Provider is a program, or a family of programs, whose files say which servers there are.
type Provider struct {
	// Name is what commands call it, Title what people do.
	Name, Title string
	// Priority orders providers, the highest first; equal ones are in the table's order.
	Priority int
	// Places are the provider's files, the first to count first.
	Places []Place
}

// A Place is where a file is looked for.
type Place struct {
	Root Root
	// Path starts at Root and has slashes.
	Path string
	// OS is the GOOS that has the place; empty means all.
	OS string
	// Variable names a directory which, where it is set, has the file Base in the place of this one.
	Variable, Base string
	Shape          *Shape
}

// A Root is a directory that paths start at, and says whose files are in it.
type Root uint8

// The roots.
const (
	// Project is the working directory. What is there came with it; all other roots are the person's own.
	Project Root = iota
	// Config is $XDG_CONFIG_HOME, Home the home directory, AppData the roaming profile of Windows.
	Config
	Home
	AppData
)

// Providers is the table, in the order in which their files count.
func Providers() []Provider {
	all := []Provider{
		native(), indus(), pisces(), claudeCode(), codex(), gemini(), opencode(), cursor(), windsurf(), claudeDesktop(),
		cline(), zed(), crush(), goose(), vscode(), mcpJSON(),
	}
	slices.SortStableFunc(all, func(a, b Provider) int { return b.Priority - a.Priority })
	return all
}

// A Base has the directories that places start at. An empty one is not known, and then has no files.
type Base struct {
	// OS is a GOOS.
	OS                             string
	Project, Config, Home, AppData string
	// Lookup finds a variable.
	Lookup func(string) (string, bool)
}

// File is where the place is, as an absolute path; empty where this system has none.
func (p Place) File(b Base) string {
	if p.OS != "" && p.OS != b.OS {
		return ""
	}
	if p.Variable != "" {
		if dir, ok := b.Lookup(p.Variable); ok && filepath.IsAbs(dir) {
			return filepath.Join(dir, filepath.FromSlash(p.Base))
		}
	}
	dir := map[Root]string{Project: b.Project, Config: b.Config, Home: b.Home, AppData: b.AppData}[p.Root]
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, filepath.FromSlash(p.Path))
}

// String shows the place to people, such as "~/.cursor/mcp.json".
func (p Place) String() string {
	root := map[Root]string{Config: "~/.config/", Home: "~/", AppData: "%APPDATA%/"}[p.Root]
	return root + p.Path
}

// A Shape says how a kind of file holds its rows, and how a row is written there.
type Shape struct {
	// Native says that the files are in our own words.
	Native bool
	// Settings says that what else is in the file are settings of ours.
	Settings bool
	parse    func([]byte) (doc.Node, error)
	rows     func(root doc.Node, dir string) ([]Row, []*doc.Error)
	tongue   *tongue
}

// Parse reads the file. The error is a *doc.Error.
func (s *Shape) Parse(data []byte) (doc.Node, error) { return s.parse(data) }

// Rows finds the rows of a file, and what a person should know about how they are held. Some files hold rows that count
// in one directory only: dir is the working directory.
func (s *Shape) Rows(root doc.Node, dir string) ([]Row, []*doc.Error) { return s.rows(root, dir) }

// A Row is one server as a file has it.
type Row struct {
	// Name is what the file calls it: the key in the object form, the member NameKey in the array form.
	Name, NameKey string
	Line          int
	Value         doc.Node
	// Local says that the row counts in the working directory only.
	Local bool
	// off says that the file turns the server off elsewhere; inputs has the defaults of what a person is asked for.
	off    bool
	inputs map[string]string
}

// held finds the rows in the members at paths, each an array or an object; key names a row of an array.
func held(root doc.Node, key string, paths ...[]string) (rows []Row) {
	for _, path := range paths {
		for _, m := range root.All(path...) {
			for _, server := range m.Value.Members {
				rows = append(rows, Row{Name: server.Name, Line: server.Line, Value: server.Value})
			}
			for _, server := range m.Value.Items {
				m, _ := server.Find(key)
				name, _ := m.Value.Word()
				rows = append(rows, Row{Name: name, Line: server.Line, Value: server, NameKey: key})
			}
		}
	}
	return rows
}

// at is a Shape's rows for files that hold them at paths and much else besides.
func at(paths ...[]string) func(doc.Node, string) ([]Row, []*doc.Error) {
	return func(root doc.Node, _ string) ([]Row, []*doc.Error) { return held(root, "name", paths...), nil }
}

// names are the texts of the list at path.
func names(root doc.Node, path ...string) map[string]bool {
	texts := map[string]bool{}
	for _, m := range root.All(path...) {
		for _, item := range m.Value.Items {
			if s, ok := item.Word(); ok {
				texts[s] = true
			}
		}
	}
	return texts
}

// turnOff marks the rows that the file turns off by name.
func turnOff(rows []Row, off map[string]bool) {
	for i := range rows {
		rows[i].off = rows[i].off || off[rows[i].Name]
	}
}
