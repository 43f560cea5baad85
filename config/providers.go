package config

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/clientconfig"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A Provider is a program, or a family of programs, whose files list MCP servers.
type Provider struct {
	// Name is the program's name in commands. Title is the name for people.
	Name, Title string
	// ProjectFiles are the program's files in a working directory. UserFiles are its user-level files, on this and
	// other systems. Both are written for people, such as "~/.cursor/mcp.json". Earlier files have precedence.
	ProjectFiles, UserFiles []string
}

// Providers returns the programs whose files Drawbridge can read, in order of precedence. The first is Drawbridge
// itself.
func Providers() []Provider {
	var all []Provider
	for _, p := range clientconfig.Providers() {
		shown := Provider{Name: p.Name, Title: p.Title}
		for _, at := range p.Locations {
			to := &shown.UserFiles
			if at.Root == clientconfig.ProjectRoot || at.Root == clientconfig.PluginRoot {
				to = &shown.ProjectFiles
			}
			if s := at.String(); !slices.Contains(*to, s) {
				*to = append(*to, s)
			}
		}
		all = append(all, shown)
	}
	return all
}

// UserFile returns the path of the file to which the person's own servers are written, whether the file exists or not.
// The error is a *drawbridge.Fault, for a missing home directory.
func UserFile(o Options) (string, error) {
	l, err := newLoader(o)
	if err == nil && l.Config == "" {
		err = configfile.FileFault("find the configuration directory",
			errors.New("neither a home nor XDG_CONFIG_HOME is known"))
	}
	if err != nil {
		return "", err
	}
	return filepath.Join(l.Config, "drawbridge", "mcp.json"), nil
}

// ProjectFile returns the path of the file to which the working directory's servers are written, whether the file
// exists or not. The error is a *drawbridge.Fault, if the working directory cannot be found.
func ProjectFile(o Options) (string, error) {
	l, err := newLoader(o)
	if err != nil {
		return "", err
	}
	return filepath.Join(l.Project, ".drawbridge", "mcp.json"), nil
}

// SourceFiles returns the paths of the files whose change may change the result of Load, whether the files exist or
// not. First come the files that Load reads, in order. If a directory is searched, the files that list and disable
// plugins follow. The error is that of Load for a path that a person named.
func SourceFiles(o Options) ([]string, error) {
	l, err := newLoader(o)
	if err != nil {
		return nil, err
	}
	sources, err := l.sources(o.Paths)
	var paths []string
	for _, src := range sources {
		paths = append(paths, src.path)
	}
	if slices.ContainsFunc(sources, func(src sourceFile) bool { return src.dir != "" }) { // a directory was searched
		paths = append(paths, l.pluginFiles()...)
	}
	return paths, err
}

// providersByName returns the providers with the given names, except Drawbridge; no names mean all providers.
func providersByName(names []string) ([]clientconfig.Provider, error) {
	all := slices.DeleteFunc(clientconfig.Providers(), func(p clientconfig.Provider) bool { return p.Name == "native" })
	known := make([]string, 0, len(all))
	for _, p := range all {
		known = append(known, p.Name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			fault := configfile.FileFault("import from "+safetext.Line(name), errors.New("unknown program"+
				configfile.DidYouMean(name, known)))
			fault.Next = "name one of " + strings.Join(known, ", ")
			return nil, fault
		}
	}
	if len(names) > 0 {
		all = slices.DeleteFunc(all, func(p clientconfig.Provider) bool { return !slices.Contains(names, p.Name) })
	}
	return all, nil
}
