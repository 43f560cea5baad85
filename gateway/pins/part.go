package pins

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/gateway/vetting"
	"github.com/drawbridge-mcp/drawbridge/shield"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// memberOf is the member by which the objects of a part are known.
func memberOf(part string) string {
	if part == shield.PartTemplate {
		return "uriTemplate"
	}
	return "name"
}

// Of gives what a listing has of a part, by the names that it is pinned under; of two with one name, the first.
func Of(l drawbridge.Listing, part string) (list []shield.Listed) {
	var all []json.RawMessage
	switch part {
	case "":
		all = l.Tools
	case shield.PartPrompt:
		all = l.Prompts
	case shield.PartTemplate:
		all = l.Templates
	case shield.PartInstructions:
		return []shield.Listed{{Tool: part, Definition: shield.Instructions(l.Instructions)}}
	}
	seen := make(map[string]bool, len(all))
	for _, raw := range all {
		if name := wire.GetText(raw, memberOf(part)); name != "" && !seen[name] {
			seen[name] = true
			list = append(list, shield.Listed{Tool: name, Definition: raw})
		}
	}
	return list
}

// wordOf is a part for people.
func wordOf(part string) string {
	if part == "" {
		return "tool"
	}
	return part
}

// parted are the objects of a sight that belong to a part.
func parted(s *vetting.Sight, part string) []deck.Shown {
	switch part {
	case shield.PartPrompt:
		return s.Prompts
	case shield.PartTemplate:
		return s.Templates
	}
	return s.Tools
}
