package clientconfig

import (
	"path/filepath"
	"slices"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// A Provider is a program, or a family of programs, whose files configure MCP servers.
type Provider struct {
	// Name is the name in commands, Title the name for people.
	Name, Title string
	// Priority orders providers, the highest first. Equal ones keep the order of the table.
	Priority int
	// Locations are the possible files of the provider, in order of precedence.
	Locations []FileLocation
}

// A FileLocation is a possible location of a file.
type FileLocation struct {
	Root LocationRoot
	// Path is relative to Root, with slashes.
	Path string
	// OS is the GOOS on which the location exists; empty means all.
	OS string
	// Variable names a directory; if it is set, the file Base in it replaces this one.
	Variable, FileInVariable string
	Shape                    *Dialect
}

// A LocationRoot is a base directory of paths, and so determines who owns the files in it.
type LocationRoot uint8

// The roots.
const (
	// ProjectRoot is the working directory. Its files may come from other people; files under all other roots except
	// PluginRoot are the user's own.
	ProjectRoot LocationRoot = iota
	// ConfigRoot is $XDG_CONFIG_HOME, Home the home directory, AppDataRoot the roaming profile of Windows.
	ConfigRoot
	HomeRoot
	AppDataRoot
	// PluginRoot is the directory of an installed plugin. Other people wrote the files in it, as in a project.
	PluginRoot
)

// Providers returns all providers, in order of precedence of their files.
func Providers() []Provider {
	all := []Provider{
		nativeProvider(), indusProvider(), piscesProvider(), claudeCodeProvider(), claudePluginsProvider(),
		codexProvider(), geminiProvider(), opencodeProvider(), cursorProvider(), windsurfProvider(), claudeDesktopProvider(),
		clineProvider(), zedProvider(), crushProvider(), gooseProvider(), vscodeProvider(), mcpJSONProvider(),
	}
	slices.SortStableFunc(all, func(a, b Provider) int { return b.Priority - a.Priority })
	return all
}

// A BaseDirs holds the directories that locations are relative to. An empty one is unknown, and its locations are
// skipped.
type BaseDirs struct {
	// OS is a GOOS.
	OS                             string
	Project, Config, Home, AppData string
	// Plugin is the directory of one plugin.
	Plugin string
	// Lookup returns the value of an environment variable, and whether it is set.
	Lookup func(string) (string, bool)
}

// Resolve returns the absolute path of the location, or "" if it does not exist on this system.
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

// String returns the location for people, such as "~/.cursor/mcp.json".
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

// Rows returns the rows of a file, and problems with the way they are written. Some files hold rows for one directory
// only; dir is the working directory.
func (s *Dialect) Rows(root configfile.Node, dir string) ([]ServerRow, []*configfile.Error) {
	return s.findRows(root, dir)
}

// A ServerRow is one server as written in a file.
type ServerRow struct {
	// Name is the row's name: the key in the object form, the member NameKey in the array form.
	Name, NameKey string
	Line          int
	Value         configfile.Node
	// Local is set if the row applies to the working directory only.
	Local bool
	// off is set if another part of the file disables the server. inputs holds the defaults of input prompts.
	off    bool
	inputs map[string]string
}

// rowsAt returns the rows in the members at paths, each an array or an object; key is the name member of a row in an
// array.
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

// rowsAtPaths returns a function that reads the rows at paths, for files with many other members.
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

// markDisabled marks the rows whose names are in off.
func markDisabled(rows []ServerRow, off map[string]bool) {
	for i := range rows {
		rows[i].off = rows[i].off || off[rows[i].Name]
	}
}
