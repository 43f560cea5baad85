package config

import (
	"github.com/drawbridge-mcp/drawbridge/config/discovery"
	"github.com/drawbridge-mcp/drawbridge/config/doc"
)

// Discovery says how cards are found.
type Discovery = discovery.Discovery

// discoverySettings are the members of [mcp.tool_discovery], and those of [mcp] that go with them.
func discoverySettings() (all []setting) {
	for _, m := range discovery.Members() {
		all = append(all, setting{m.Section, m.Name, m.Type, m.Default, m.Doc,
			func(r *settingsReader, v doc.Node) error { return m.Read(&r.settings.Discovery, v) }})
	}
	return all
}
