package deck

import (
	"slices"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// In MCP Apps (extension io.modelcontextprotocol/ui), a tool can name a page: a resource of its server that a host
// shows for the tool. The page's URI is in one of two members of the tool's "_meta". Two servers may have pages with
// the same URI. Then the host must not show the first server's page for the second server's tools. So the second
// server's URI is qualified with the server's name, both in the resource and in the tool.

// unlistedPages returns items for the pages that the server's tools name but that the server does not list.
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

// toolsWithPageURIs returns the tools of a server with the public URIs of their pages in place of the server's own
// URIs.
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

// pageURIEdits returns the edits that replace the page URIs in a tool with the public URIs of the pages.
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

// withEdits returns a copy of the item with an edited definition.
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
