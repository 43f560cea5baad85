package cli

import (
	"cmp"
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
)

// listingItems returns all items of a listing, as the server sent them.
func listingItems(l drawbridge.Listing) (all []serverItem) {
	for _, part := range []struct {
		kind, name, pinned string
		list               []json.RawMessage
	}{
		{"tool", "name", "", l.Tools}, {"prompt", "name", shield.PartPrompt, l.Prompts},
		{"resource", "uri", "resource", l.Resources},
		{"template", "uriTemplate", shield.PartTemplate, l.Templates},
	} {
		for _, raw := range part.list {
			id := rawjson.GetString(raw, part.name)
			if part.name == "name" {
				id = string(l.Server) + drawbridge.NameSeparator + id
			}
			all = append(all, serverItem{id, part.kind, raw, l.Server, shield.PinLabel(part.pinned,
				rawjson.GetString(raw, part.name))})
		}
	}
	if l.Instructions != "" {
		all = append(all, serverItem{string(l.Server), "instructions", rawjson.Quote(l.Instructions), l.Server,
			shield.PartInstructions})
	}
	return all
}

// mountedItems returns the items that a server lists, as the server sent them. absent are the servers that could not be
// listed. An empty server selects all servers.
func mountedItems(g *gateway.Gateway, server drawbridge.ServerID) (all []serverItem, absent []unlistedServer) {
	for _, s := range g.Status() {
		if server != "" && server != s.Server || s.Phase == drawbridge.Disabled || s.Phase == drawbridge.NeedsApproval {
			continue
		}
		if l, ok := g.Deck().LastListing(s.Server); ok {
			all = append(all, listingItems(l)...)
		} else {
			absent = append(absent, unlistedServer{Server: s.Server, Reason: cmp.Or(s.Fault, s.Reason,
				"it was not listed, or its list could not be kept")})
		}
	}
	return all, absent
}
