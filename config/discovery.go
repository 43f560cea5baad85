package config

import (
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// discoverySettingTable are the members of [mcp.tool_discovery], and those of [mcp] that go with them.
func discoverySettingTable() (all []setting) {
	for _, m := range discoveryMembers() {
		all = append(all, setting{m.Section, m.Name, m.Type, m.Default, m.Doc,
			func(r *settingsReader, v configfile.Node) error { return m.Read(&r.settings.Discovery, v) }})
	}
	return all
}
