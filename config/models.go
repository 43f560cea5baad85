package config

import (
	"time"

	"github.com/drawbridge-mcp/drawbridge/config/doc"
	"github.com/drawbridge-mcp/drawbridge/config/model"
	"github.com/drawbridge-mcp/drawbridge/config/refer"
	"github.com/drawbridge-mcp/drawbridge/config/value"
)

// What drawbridge.toml says of models that run elsewhere.
type (
	Models    = model.Models
	Embedding = model.Embedding
	Rerank    = model.Rerank
	Key       = refer.Key
)

// modelSettings are the members of [mcp.tool_discovery.embedding] and [mcp.tool_discovery.rerank].
func modelSettings() (all []setting) {
	for _, s := range model.Settings() {
		all = append(all, setting{s.Section, s.Name, s.Type, s.Default, s.Doc, func(r *settingsReader, v doc.Node) error {
			switch to := s.To(&r.settings.Models).(type) {
			case *string:
				if s.Words != nil {
					return value.OneOf(to, v, s.Words...)
				} else if s.Type == "URL" {
					return r.Web(to, v)
				}
				return r.Text(to, v)
			case *int:
				return value.Whole(to, v)
			case *time.Duration:
				return value.Positive(to, v)
			case *refer.Key:
				return r.Key(to, v)
			}
			return nil
		}})
	}
	return all
}
