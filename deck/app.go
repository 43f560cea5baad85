package deck

import (
	"slices"

	"github.com/drawbridge-mcp/drawbridge/deck/offer"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A tool of MCP Apps (extension io.modelcontextprotocol/ui) names the page that a host shows for it, in one of two places
// of its "_meta". The page is a resource of the tool's server. Where two servers have a page of one URI, the host must not
// show the first one's for the tools of the second: so a page is the resource of the server whose tool names it, listed
// or not, and the later of two is qualified, in the resource and in the tool alike.

// pages makes items of the pages that the member's tools name and that it does not list.
func (mk maker) pages(m *member) []*item {
	seen := map[string]bool{}
	for _, it := range m.resources {
		seen[it.spec.Tool] = true
	}
	var offers []offer.Offer
	for _, it := range m.tools {
		for _, uri := range it.pages {
			if !seen[uri] {
				seen[uri] = true
				offers = append(offers, offer.Offer{Own: uri, Name: uri, Raw: wire.Apply(nil, wire.Put(wire.Quote(uri), "uri"))})
			}
		}
	}
	return mk.items(resources, m.ID, offers, nil)
}

// dressed gives the tools of a member as they are listed: those whose pages have other URIs on the deck say so.
func (v *view) dressed(m *member) []*item {
	out, own := m.tools, true
	for i, it := range m.tools {
		edits := v.pageEdits(it)
		if len(edits) == 0 {
			continue
		}
		if own {
			out, own = slices.Clone(out), false
		}
		out[i] = it.edited(edits)
	}
	return out
}

// pageEdits are what makes a tool name its pages as callers know them.
func (v *view) pageEdits(it *item) (edits []wire.Edit) {
	if len(it.pages) == 0 {
		return nil
	}
	for _, path := range offer.PagePaths() {
		own := wire.GetText(it.offer.Raw, path...)
		if !slices.Contains(it.pages, own) {
			continue
		}
		page := v.resources.ownedBy(it.spec.Server, own)
		if page != nil && string(page.spec.Name) != own {
			edits = append(edits, wire.Put(wire.Quote(string(page.spec.Name)), path...))
		}
	}
	return edits
}

// edited is the item with another definition.
func (it *item) edited(edits []wire.Edit) *item {
	out := *it
	out.offer.Raw = wire.Apply(it.offer.Raw, edits...)
	out.spec.Definition = wire.Apply(it.spec.Definition, edits...)
	if b, ok := it.card.(offer.Bridged); ok {
		b.Is = out.spec
		out.card = b
	}
	return &out
}
