package config

import (
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// discoverySettingTable returns the settings for tool discovery, in [mcp.tool_discovery] and in [mcp].
func discoverySettingTable() (all []setting) {
	for _, m := range discoveryMembers() {
		all = append(all, setting{m.Section, m.Name, m.Type, m.Default, m.Doc,
			func(r *settingsReader, v configfile.Node) error { return m.Read(&r.settings.Discovery, v) }})
	}
	return all
}
