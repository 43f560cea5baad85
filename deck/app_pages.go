package deck

import (
	"slices"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A tool of MCP Apps (extension io.modelcontextprotocol/ui) names the page that a host shows for it, in one of two
// members of its "_meta". The page is a resource of the tool's server. If two servers have a page with one URI, the
// host must not show the first server's page for the second server's tools. So a tool's page always belongs to the
// tool's server, listed or not, and the later of two URIs is qualified in the resource and in the tool alike.

// unlistedPages makes items of the pages that the server's tools name but the server does not list.
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
	return mk.makeItems(resources, m.ID, offers, nil, false)
}

// toolsWithPageURIs returns the tools of a server as they are listed, with public URIs for their pages.
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

// pageURIEdits returns the edits that put public URIs of pages into a tool.
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

// withEdits returns the item with an edited definition.
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
