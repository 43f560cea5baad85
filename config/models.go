package config

import (
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// modelSettingTable returns the settings in [mcp.tool_discovery.embedding] and [mcp.tool_discovery.rerank].
func modelSettingTable() (all []setting) {
	for _, s := range modelMembers() {
		all = append(all, setting{s.Section, s.Name, s.Type, s.Default, s.Doc, func(r *settingsReader,
			v configfile.Node) error {
			switch to := s.target(&r.settings.Models).(type) {
			case *string:
				if s.Words != nil {
					return readOneOf(to, v, s.Words...)
				} else if s.Type == "URL" {
					return r.readWebURL(to, v)
				}
				return r.readText(to, v)
			case *int:
				return readPositiveInt(to, v)
			case *time.Duration:
				return readPositiveDuration(to, v)
			case *SecretRef:
				return r.readSecretRef(to, v)
			}
			return nil
		}})
	}
	return all
}
