package shield

import (
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// Items are all things of a listing, as the server said them.
func Items(l drawbridge.Listing) (all []Item) {
	for _, part := range []struct {
		kind, name string
		list       []json.RawMessage
	}{{"tool", "name", l.Tools}, {"prompt", "name", l.Prompts}, {"resource", "uri", l.Resources}, {"template", "uriTemplate", l.Templates}} {
		for _, raw := range part.list {
			id := wire.GetText(raw, part.name)
			if part.name == "name" {
				id = string(l.Server) + drawbridge.Qualifier + id
			}
			all = append(all, Item{ID: id, Kind: part.kind, Definition: raw})
		}
	}
	if l.Instructions != "" {
		all = append(all, Item{ID: string(l.Server), Kind: "instructions", Definition: wire.Quote(l.Instructions)})
	}
	return all
}
