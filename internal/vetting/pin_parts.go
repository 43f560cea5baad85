package vetting

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
)

// nameMember returns the name of the JSON member that contains an item's name, for the items of a part.
func nameMember(part string) string {
	if part == shield.PartTemplate {
		return "uriTemplate"
	}
	return "name"
}

// PinnableItems returns the items of one part of a listing, with the names under which they are pinned. If two items
// have the same name, only the first is returned.
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

// partNoun returns the word for a part in texts for people.
func partNoun(part string) string {
	if part == "" {
		return "tool"
	}
	return part
}

// partItems returns the vetted items of a part of the listing. A part of another name counts as the tools.
func partItems(s *Inspection, part string) []deck.VettedItem {
	switch part {
	case shield.PartPrompt:
		return s.Prompts
	case shield.PartTemplate:
		return s.Templates
	}
	return s.Tools
}
