package deck

import (
	"slices"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A tool of MCPNames Apps (extension io.modelcontextprotocol/ui) names the page that a host shows for it, in one of
// two places of its "_meta". The page is a resource of the tool's server. Where two servers have a page of one URI,
// the host must not show the first one's for the tools of the second: so a page is the resource of the server whose
// tool names it, listed or not, and the later of two is qualified, in the resource and in the tool alike.

// unlistedPages makes items of the pages that the member's tools name and that it does not list.
func (mk itemMaker) unlistedPages(m *serverState) []*item {
	seen := map[string]bool{}
	for _, it := range m.resources {
		seen[it.spec.Tool] = true
	}
	var offers []offeredItem
	for _, it := range m.tools {
		for _, uri := range it.pageURIs {
			if !seen[uri] {
				seen[uri] = true
				offers = append(offers, offeredItem{ownName: uri, Name: uri, Raw: rawjson.Apply(nil,
					rawjson.Put(rawjson.Quote(uri), "uri"))})
			}
		}
	}
	return mk.makeItems(resources, m.ID, offers, nil)
}

// toolsWithPageURIs gives the tools of a member as they are listed: those whose pages have other URIs on the deck say
// so.
func (v *view) toolsWithPageURIs(m *serverState) []*item {
	out, own := m.tools, true
	for i, it := range m.tools {
		edits := v.pageURIEdits(it)
		if len(edits) == 0 {
			continue
		}
		if own {
			out, own = slices.Clone(out), false
		}
		out[i] = it.withEdits(edits)
	}
	return out
}

// pageURIEdits are what makes a tool name its pages as callers know them.
func (v *view) pageURIEdits(it *item) (edits []rawjson.Edit) {
	if len(it.pageURIs) == 0 {
		return nil
	}
	for _, path := range pageURIPaths() {
		own := rawjson.GetString(it.offer.Raw, path...)
		if !slices.Contains(it.pageURIs, own) {
			continue
		}
		page := v.resources.findByOwnName(it.spec.Server, own)
		if page != nil && string(page.spec.Name) != own {
			edits = append(edits, rawjson.Put(rawjson.Quote(string(page.spec.Name)), path...))
		}
	}
	return edits
}

// withEdits is the item with another definition.
func (it *item) withEdits(edits []rawjson.Edit) *item {
	out := *it
	out.offer.Raw = rawjson.Apply(it.offer.Raw, edits...)
	out.spec.Definition = rawjson.Apply(it.spec.Definition, edits...)
	if b, ok := it.card.(upstreamCard); ok {
		b.spec = out.spec
		out.card = b
	}
	return &out
}
