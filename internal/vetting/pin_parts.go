package vetting

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
)

// nameMember is the member by which the objects of a part are known.
func nameMember(part string) string {
	if part == shield.PartTemplate {
		return "uriTemplate"
	}
	return "name"
}

// PinnableItems gives what a listing has of a part, by the names that it is pinned under; of two with one name, the
// first.
func PinnableItems(l drawbridge.Listing, part string) (list []shield.ListedTool) {
	var all []json.RawMessage
	switch part {
	case "":
		all = l.Tools
	case shield.PartPrompt:
		all = l.Prompts
	case shield.PartTemplate:
		all = l.Templates
	case shield.PartInstructions:
		return []shield.ListedTool{{Tool: part, Definition: shield.InstructionsDefinition(l.Instructions)}}
	}
	seen := make(map[string]bool, len(all))
	for _, raw := range all {
		if name := rawjson.GetString(raw, nameMember(part)); name != "" && !seen[name] {
			seen[name] = true
			list = append(list, shield.ListedTool{Tool: name, Definition: raw})
		}
	}
	return list
}

// partNoun is a part for people.
func partNoun(part string) string {
	if part == "" {
		return "tool"
	}
	return part
}

// partItems are the objects of a sight that belong to a part.
func partItems(s *Inspection, part string) []deck.VettedItem {
	switch part {
	case shield.PartPrompt:
		return s.Prompts
	case shield.PartTemplate:
		return s.Templates
	}
	return s.Tools
}
