package config

import (
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// A settingName is the table and the name of a setting in it.
type settingName struct{ section, name string }

func (n settingName) String() string { return n.section + "." + n.name }

// otherSettingNames lists settings that other programs name differently. Each element has the other program's name and
// Drawbridge's name for the same setting.
var otherSettingNames = []struct{ other, ours settingName }{
	{settingName{"mcp", "default_env_isolation"}, settingName{"mcp", "env_isolation"}},
	{settingName{"mcp", "embedding_provider"}, settingName{embeddingTable, "provider"}},
	{settingName{discoveryTable, "embedding_provider"}, settingName{embeddingTable, "provider"}},
	{settingName{"llm.orchestrator", "embedding_model"}, settingName{embeddingTable, "model"}},
}

// findSetting returns the setting with the given name, which may be the name in another program (see
// otherSettingNames). It returns nil if there is none.
func findSetting(section, name string) *setting {
	for _, n := range otherSettingNames {
		if n.other == (settingName{section, name}) {
			section, name = n.ours.section, n.ours.name
		}
	}
	for i, s := range settingTable {
		if s.section == section && s.name == name {
			return &settingTable[i]
		}
	}
	return nil
}

// isSection reports whether a table of that name contains settings, or contains tables of settings.
func isSection(name string) bool {
	within := func(section string) bool { return strings.HasPrefix(section+".", name+".") }
	return slices.ContainsFunc(settingTable, func(s setting) bool { return within(s.section) }) ||
		slices.ContainsFunc(otherSettingNames, func(n struct{ other, ours settingName }) bool {
			return within(n.other.section)
		})
}

func settingNames(section string) (names []string) {
	for _, s := range settingTable {
		if s.section == section {
			names = append(names, s.name)
		}
	}
	return names
}

// checkOnlyName returns an error if the file already sets the same setting under another name, since only one of both
// values could have an effect.
func (r *settingsReader) checkOnlyName(found *setting, name string, line int) error {
	ours := settingName{found.section, found.name}
	if before, ok := r.setAs[ours]; ok && before != name {
		return configfile.ErrorAt(line, "%s is also set as %s; remove one of them", name, before)
	}
	if r.setAs == nil {
		r.setAs = map[settingName]string{}
	}
	r.setAs[ours] = name
	return nil
}
