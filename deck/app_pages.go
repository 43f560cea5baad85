package deck

import (
	"slices"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// In MCP Apps (extension io.modelcontextprotocol/ui), a tool can name a page: a resource of its server that a host
// shows for the tool. The page's URI is in one of two members of the tool's "_meta". Two servers may have different
// pages with the same URI. A host would then show the first server's page for a tool of the second server. So the
// second server's URI is qualified with its name, both in the resource and in the tool. In the style BareNames URIs are
// not qualified.

// unlistedPages returns resource items for the pages that the server's tools name but that resources/list of the server
// does not contain.
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

// toolsWithPageURIs returns the tools of a server. In their definitions, the server's own URI of a page is replaced
// with the page's public URI.
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

// pageURIEdits returns the edits of a tool's definition that replace the server's own page URIs with the public URIs.
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

// withEdits returns a copy of the item in which the edits are applied to its definition.
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
