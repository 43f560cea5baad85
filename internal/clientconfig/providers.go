package clientconfig

import (
	"path/filepath"
	"slices"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// A Provider is a program, or a family of programs, whose files say which servers there are.
type Provider struct {
	// Name is what commands call it, Title what people do.
	Name, Title string
	// Priority orders providers, the highest first; equal ones are in the table's order.
	Priority int
	// Locations are the provider's files, the first to count first.
	Locations []FileLocation
}

// A FileLocation is a possible location of a file.
type FileLocation struct {
	Root LocationRoot
	// Path starts at Root and has slashes.
	Path string
	// OS is the GOOS that has the place; empty means all.
	OS string
	// Variable names a directory; if it is set, the file Base in it replaces this one.
	Variable, FileInVariable string
	Shape                    *Dialect
}

// A LocationRoot is a base directory of paths, and so determines who owns the files in it.
type LocationRoot uint8

// The roots.
const (
	// ProjectRoot is the working directory, whose files came with it; all other roots are the person's own.
	ProjectRoot LocationRoot = iota
	// ConfigRoot is $XDG_CONFIG_HOME, Home the home directory, AppDataRoot the roaming profile of Windows.
	ConfigRoot
	HomeRoot
	AppDataRoot
	// PluginRoot is the directory of an installed plugin. Other people wrote the files in it, as in a project.
	PluginRoot
)

// Providers is the table, in the order in which their files count.
func Providers() []Provider {
	all := []Provider{
		nativeProvider(), indusProvider(), piscesProvider(), claudeCodeProvider(), claudePluginsProvider(),
		codexProvider(), geminiProvider(), opencodeProvider(), cursorProvider(), windsurfProvider(), claudeDesktopProvider(),
		clineProvider(), zedProvider(), crushProvider(), gooseProvider(), vscodeProvider(), mcpJSONProvider(),
	}
	slices.SortStableFunc(all, func(a, b Provider) int { return b.Priority - a.Priority })
	return all
}

// A BaseDirs has the directories that places start at. An empty one is not known, and then has no files.
type BaseDirs struct {
	// OS is a GOOS.
	OS                             string
	Project, Config, Home, AppData string
	// Plugin is the directory of one plugin.
	Plugin string
	// Lookup finds a variable.
	Lookup func(string) (string, bool)
}

// Resolve is where the place is, as an absolute path; empty where this system has none.
func (p FileLocation) Resolve(b BaseDirs) string {
	if p.OS != "" && p.OS != b.OS {
		return ""
	}
	if p.Variable != "" {
		if dir, ok := b.Lookup(p.Variable); ok && filepath.IsAbs(dir) {
			return filepath.Join(dir, filepath.FromSlash(p.FileInVariable))
		}
	}
	dir := map[LocationRoot]string{ProjectRoot: b.Project, ConfigRoot: b.Config, HomeRoot: b.Home,
		AppDataRoot: b.AppData, PluginRoot: b.Plugin}[p.Root]
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, filepath.FromSlash(p.Path))
}

// String shows the place to people, such as "~/.cursor/mcp.json".
func (p FileLocation) String() string {
	root := map[LocationRoot]string{ConfigRoot: "~/.config/", HomeRoot: "~/", AppDataRoot: "%APPDATA%/",
		PluginRoot: "PLUGIN/"}[p.Root]
	return root + p.Path
}

// A Dialect describes how a kind of file holds its rows, and how a row is written there.
type Dialect struct {
	// Native is set if the files are in the native format.
	Native bool
	// Settings is set if the rest of the file is settings of Drawbridge.
	Settings bool
	parse    func([]byte) (configfile.Node, error)
	findRows func(root configfile.Node, dir string) ([]ServerRow, []*configfile.Error)
	grammar  *rowGrammar
}

// Parse reads the file. The error is a *configfile.Error.
func (s *Dialect) Parse(data []byte) (configfile.Node, error) { return s.parse(data) }

// Rows finds the rows of a file, and what a person should know about how they are held. Some files hold rows that count
// in one directory only: dir is the working directory.
func (s *Dialect) Rows(root configfile.Node, dir string) ([]ServerRow, []*configfile.Error) {
	return s.findRows(root, dir)
}

// A ServerRow is one server as a file has it.
type ServerRow struct {
	// Name is the row's name: the key in the object form, the member NameKey in the array form.
	Name, NameKey string
	Line          int
	Value         configfile.Node
	// Local is set if the row applies to the working directory only.
	Local bool
	// off is set if the file disables the server elsewhere; inputs has the defaults of input prompts.
	off    bool
	inputs map[string]string
}

// rowsAt finds the rows in the members at paths, each an array or an object; key names a row of an array.
func rowsAt(root configfile.Node, key string, paths ...[]string) (rows []ServerRow) {
	for _, path := range paths {
		for _, m := range root.FindAll(path...) {
			for _, server := range m.Value.Members {
				rows = append(rows, ServerRow{Name: server.Name, Line: server.Line, Value: server.Value})
			}
			for _, server := range m.Value.Items {
				m, _ := server.Find(key)
				name, _ := m.Value.TextValue()
				rows = append(rows, ServerRow{Name: name, Line: server.Line, Value: server, NameKey: key})
			}
		}
	}
	return rows
}

// rowsAtPaths is a Shape's rows for files that hold them at paths and much else besides.
func rowsAtPaths(paths ...[]string) func(configfile.Node, string) ([]ServerRow, []*configfile.Error) {
	return func(root configfile.Node, _ string) ([]ServerRow, []*configfile.Error) {
		return rowsAt(root, "name", paths...), nil
	}
}

// textSetAt returns the strings of the list at path.
func textSetAt(root configfile.Node, path ...string) map[string]bool {
	texts := map[string]bool{}
	for _, m := range root.FindAll(path...) {
		for _, item := range m.Value.Items {
			if s, ok := item.TextValue(); ok {
				texts[s] = true
			}
		}
	}
	return texts
}

// markDisabled marks the rows that the file turns off by name.
func markDisabled(rows []ServerRow, off map[string]bool) {
	for i := range rows {
		rows[i].off = rows[i].off || off[rows[i].Name]
	}
}
