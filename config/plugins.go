package config

import (
	"github.com/drawbridge-mcp/drawbridge/internal/clientconfig"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// maxPlugins is the maximum number of plugins whose files are read.
const maxPlugins = 200

// pluginSources returns the configuration file of each Claude Code plugin that is installed for the directory dir.
// Plugins are written by other people. Their servers therefore need approval as a project's servers do, even if dir is
// the person's own.
func (l *loader) pluginSources(p clientconfig.Provider, at clientconfig.FileLocation, dir string) (all []sourceFile) {
	list, settings := clientconfig.PluginFiles(l.BaseDirs)
	if list == "" {
		return nil
	}
	base := l.BaseDirs
	dirs := clientconfig.PluginDirs(parseOwnFile(list), parseOwnFile(settings), dir)
	for _, base.Plugin = range dirs[:min(len(dirs), maxPlugins)] {
		all = append(all, sourceFile{path: at.Resolve(base), kind: OriginProject, provider: p.Name, dialect: at.Shape,
			readRows: true, dir: base.Plugin})
	}
	return all
}

// pluginFiles returns the paths of two files: the list of installed plugins, and the settings that can disable plugins.
// It returns nil if their location is unknown.
func (l *loader) pluginFiles() (paths []string) {
	list, settings := clientconfig.PluginFiles(l.BaseDirs)
	if list == "" {
		return nil
	}
	return []string{list, settings}
}

// parseOwnFile parses a user-level JSON file of another program. If the file cannot be read or parsed, the result is an
// empty node.
func parseOwnFile(path string) configfile.Node {
	data, err := sourceFile{path: path, kind: OriginUser, dialect: &clientconfig.Dialect{}}.readBytes()
	if err != nil {
		return configfile.Node{}
	}
	root, err := configfile.ParseJSON(data)
	if err != nil {
		return configfile.Node{}
	}
	return root
}
