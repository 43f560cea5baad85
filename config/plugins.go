package config

import (
	"github.com/drawbridge-mcp/drawbridge/internal/clientconfig"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// maxPlugins is the maximum number of plugins whose files are read.
const maxPlugins = 200

// pluginSources lists the file of each installed plugin. Other people wrote it, so its servers need approval as a
// project's servers do, whichever directory was searched.
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

// pluginFiles lists the files that determine the plugins.
func (l *loader) pluginFiles() (paths []string) {
	list, settings := clientconfig.PluginFiles(l.BaseDirs)
	if list == "" {
		return nil
	}
	return []string{list, settings}
}

// parseOwnFile parses a JSON file of another program among the person's own. The result is empty if the file cannot be
// read: it lists nothing then.
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
