package clientconfig

import (
	"path/filepath"
	"slices"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// A Provider is a program, or a family of programs, whose files configure MCP servers.
type Provider struct {
	// Name is the provider's name in commands. Title is the name for people.
	Name, Title string
	// Priority determines the order of providers: the highest comes first. Providers of equal priority remain in the
	// order in which they are listed.
	Priority int
	// Locations are the possible files of the provider, in order of precedence.
	Locations []FileLocation
}

// A FileLocation is a possible location of a configuration file.
type FileLocation struct {
	Root LocationRoot
	// Path is relative to Root and uses slashes.
	Path string
	// OS is the GOOS on which the location is used; empty means all systems.
	OS string
	// Variable is the name of an environment variable; empty means none. If the variable contains the absolute path of
	// a directory, the location is the file FileInVariable in that directory, and not Path.
	Variable, FileInVariable string
	Shape                    *Dialect
}

// A LocationRoot is a base directory of locations. It also determines whether the files are the user's own.
type LocationRoot uint8

// The base directories.
const (
	// ProjectRoot is the working directory, whose files other people may have written. Files under all other roots,
	// except PluginRoot, are the user's own.
	ProjectRoot LocationRoot = iota
	// ConfigRoot is $XDG_CONFIG_HOME. HomeRoot is the home directory. AppDataRoot is the roaming profile on Windows.
	ConfigRoot
	HomeRoot
	AppDataRoot
	// PluginRoot is the directory of an installed plugin, whose files other people have written.
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

// BaseDirs are the directories that locations are relative to. A location is skipped if its directory is empty, which
// means unknown.
type BaseDirs struct {
	// OS is the operating system, as in GOOS.
	OS                             string
	Project, Config, Home, AppData string
	// Plugin is the directory of one plugin.
	Plugin string
	// Lookup returns the value of an environment variable, and reports whether the variable is set.
	Lookup func(string) (string, bool)
}

// Resolve returns the absolute path of the location; "" if the location is not used on this system or its directory is
// unknown.
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

// String returns the location in a form for people, such as "~/.cursor/mcp.json".
func (p FileLocation) String() string {
	root := map[LocationRoot]string{ConfigRoot: "~/.config/", HomeRoot: "~/", AppDataRoot: "%APPDATA%/",
		PluginRoot: "PLUGIN/"}[p.Root]
	return root + p.Path
}

// A Dialect describes a kind of configuration file: its syntax, where its rows are, and how a row represents a server.
type Dialect struct {
	// Native is set if the file is in Drawbridge's format.
	Native bool
	// Settings is set if the file also contains settings of Drawbridge.
	Settings bool
	parse    func([]byte) (configfile.Node, error)
	findRows func(root configfile.Node, dir string) ([]ServerRow, []*configfile.Error)
	grammar  *rowGrammar
}

// Parse parses the content of a file. The error is a *configfile.Error.
func (s *Dialect) Parse(data []byte) (configfile.Node, error) { return s.parse(data) }

// Rows returns the rows of a parsed file, and errors about the form of the file. dir is the working directory: rows
// that the file defines for another directory only are not returned.
func (s *Dialect) Rows(root configfile.Node, dir string) ([]ServerRow, []*configfile.Error) {
	return s.findRows(root, dir)
}

// A ServerRow is the entry of one server as written in a file.
type ServerRow struct {
	// Name is the name of the server. If the rows are in a list, NameKey is the member that contains the name. If the
	// rows are in an object, the key is the name and NameKey is empty.
	Name, NameKey string
	Line          int
	Value         configfile.Node
	// Local is set if the row applies to the working directory only.
	Local bool
	// off is set if another part of the file disables the server. inputs maps the ids of input prompts to their
	// defaults.
	off    bool
	inputs map[string]string
}

// rowsAt returns the rows in the members at paths. Such a member is either an object, whose keys are the names of the
// rows, or a list. In a list, the name of a row is in the row's member key.
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

// rowsAtPaths returns a function that returns the rows at paths and ignores all other members of a file.
func rowsAtPaths(paths ...[]string) func(configfile.Node, string) ([]ServerRow, []*configfile.Error) {
	return func(root configfile.Node, _ string) ([]ServerRow, []*configfile.Error) {
		return rowsAt(root, "name", paths...), nil
	}
}

// textSetAt returns the strings of the list at path, as a set.
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

// markDisabled marks the rows whose names are in off as disabled.
func markDisabled(rows []ServerRow, off map[string]bool) {
	for i := range rows {
		rows[i].off = rows[i].off || off[rows[i].Name]
	}
}
