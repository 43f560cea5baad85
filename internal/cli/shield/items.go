package shield

import (
	"cmp"
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/shield"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// Items are all things of a listing, as the server said them.
func Items(l drawbridge.Listing) (all []Item) {
	for _, part := range []struct {
		kind, name, pinned string
		list               []json.RawMessage
	}{
		{"tool", "name", "", l.Tools}, {"prompt", "name", shield.PartPrompt, l.Prompts}, {"resource", "uri", "resource", l.Resources},
		{"template", "uriTemplate", shield.PartTemplate, l.Templates},
	} {
		for _, raw := range part.list {
			id := wire.GetText(raw, part.name)
			if part.name == "name" {
				id = string(l.Server) + drawbridge.Qualifier + id
			}
			all = append(all, Item{id, part.kind, raw, l.Server, shield.PartLabel(part.pinned, wire.GetText(raw, part.name))})
		}
	}
	if l.Instructions != "" {
		all = append(all, Item{string(l.Server), "instructions", wire.Quote(l.Instructions), l.Server, shield.PartInstructions})
	}
	return all
}

// Said gives what servers list, one's or all, as it came, and of which of them nothing could be had.
func Said(g *gateway.Gateway, server drawbridge.ServerID) (all []Item, absent []Absent) {
	for _, s := range g.Status() {
		if server != "" && server != s.Server || s.Phase == drawbridge.Disabled || s.Phase == drawbridge.NeedsApproval {
			continue
		}
		if l, ok := g.Deck().Listing(s.Server); ok {
			all = append(all, Items(l)...)
		} else {
			absent = append(absent, Absent{Server: s.Server, Why: cmp.Or(s.Fault, s.Reason, "it was not listed, or its list could not be kept")})
		}
	}
	return all, absent
}
