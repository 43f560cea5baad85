package clientconfig

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// claudePluginsProvider returns the provider for the plugins that are installed in Claude Code. In the strings of their
// files, ${CLAUDE_PLUGIN_ROOT} means the directory of the plugin.
func claudePluginsProvider() Provider {
	words := *claudeGrammar("Claude Code")
	words.convertText = pluginText
	return Provider{Name: "claude-plugins", Title: "Claude Code plugins", Priority: 75, Locations: []FileLocation{
		{Root: PluginRoot, Path: ".mcp.json", Shape: &Dialect{parse: configfile.ParseJSON, findRows: pluginRows,
			grammar: &words}},
	}}
}

// pluginRows returns the rows of a plugin's file. They are in the member mcpServers or servers, or directly in the root
// object.
func pluginRows(root configfile.Node, dir string) ([]ServerRow, []*configfile.Error) {
	rows, _ := rowsUnderEitherName(root, dir)
	for _, m := range root.Members {
		if looksLikeServer(m.Value) {
			rows = append(rows, ServerRow{Name: m.Name, Line: m.Line, Value: m.Value})
		}
	}
	return rows, nil
}

// pluginText converts a string of a plugin's row. It replaces ${CLAUDE_PLUGIN_ROOT} by c.dir, the directory of the
// plugin.
func pluginText(c *rowConverter, s string) string {
	parts := strings.Split(s, "${CLAUDE_PLUGIN_ROOT}")
	for i, part := range parts {
		parts[i] = nativeText(c, part)
	}
	return strings.Join(parts, escapePlaceholders(filepath.ToSlash(c.dir)))
}

// The files of Claude Code about plugins: the list of installed plugins and their directories, and the settings that
// disable plugins.
var (
	claudePluginList = FileLocation{Root: HomeRoot, Path: ".claude/plugins/installed_plugins.json",
		Variable: "CLAUDE_CONFIG_DIR", FileInVariable: "plugins/installed_plugins.json"}
	claudeSettings = FileLocation{Root: HomeRoot, Path: ".claude/settings.json",
		Variable: "CLAUDE_CONFIG_DIR", FileInVariable: "settings.json"}
)

// PluginFiles returns the paths of the files that list and disable plugins. A path is empty if its location is unknown.
func PluginFiles(b BaseDirs) (list, settings string) {
	return claudePluginList.Resolve(b), claudeSettings.Resolve(b)
}

// PluginDirs returns the directories of the plugins for the working directory dir, without duplicates. list and
// settings are the parsed files of PluginFiles. A plugin is excluded if settings contains false for it, or if it was
// installed for another directory only.
func PluginDirs(list, settings configfile.Node, dir string) (dirs []string) {
	off := map[string]bool{}
	for _, enabled := range settings.FindAll("enabledPlugins") {
		for _, m := range enabled.Value.Members {
			on, ok := m.Value.Bool()
			off[m.Name] = ok && !on
		}
	}
	for _, plugins := range list.FindAll("plugins") {
		for _, plugin := range plugins.Value.Members {
			if off[plugin.Name] {
				continue
			}
			installed := plugin.Value.Items // a list of installations, or a single installation
			if plugin.Value.Kind == configfile.Table {
				installed = []configfile.Node{plugin.Value}
			}
			for _, one := range installed {
				at := textAt(one, "installPath")
				project := textAt(one, "projectPath")
				other := project != "" && filepath.Clean(filepath.FromSlash(project)) != dir
				if !filepath.IsAbs(at) || other || slices.Contains(dirs, filepath.Clean(at)) {
					continue
				}
				dirs = append(dirs, filepath.Clean(at))
			}
		}
	}
	return dirs
}

// textAt returns the string in the named member; "" if there is none.
func textAt(v configfile.Node, name string) string {
	m, _ := v.Find(name)
	s, _ := m.Value.TextValue()
	return s
}
