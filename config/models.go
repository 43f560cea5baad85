package config

import (
	"path/filepath"
	"strings"
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
	Key       = model.Key
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
					return r.web(to, v)
				}
				return r.text(to, v)
			case *int:
				return value.Whole(to, v)
			case *time.Duration:
				return value.Positive(to, v)
			case *model.Key:
				return r.key(to, v)
			}
			return nil
		}})
	}
	return all
}

// key reads a secret, which may hold references, or be a command as a whole, after "!".
func (r *settingsReader) key(to *model.Key, v doc.Node) error {
	s, ok := v.Word()
	if !ok || s == "" || s == "!" {
		return value.Must("a string that is not empty")
	}
	if command, is := strings.CutPrefix(s, "!"); is {
		to.Parts = []Part{{Kind: FromCommand, Text: command}}
		return nil
	}
	to.Parts = refer.PutIn(s, r.lookup, func(inner string) { to.Missing = append(to.Missing, doc.Placeholder(inner)) })
	for i, p := range to.Parts {
		if rest, home := strings.CutPrefix(p.Text, "~/"); p.Kind == FromFile && home {
			to.Parts[i].Text = filepath.Join(r.home, rest)
		} else if p.Kind == FromFile && !filepath.IsAbs(p.Text) {
			to.Parts[i].Text = filepath.Join(r.file, p.Text)
		}
	}
	return nil
}
