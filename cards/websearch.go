package cards

import (
	"cmp"
	"context"
	_ "embed" // the description
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/webpage"
)

//go:embed websearch.md
var websearchText string

// maxQuery is the maximum number of bytes of a query.
const maxQuery = 2000

// A SearchResult is a page that a search found.
type SearchResult = webpage.Result

// A WebSearch finds pages of the web.
type WebSearch interface {
	// Search returns at most count results, best first.
	Search(ctx context.Context, query string, count int) ([]SearchResult, error)
}

type websearchInput struct {
	Query string `json:"query" jsonschema:"What to search for."`
	Count int    `json:"count,omitempty" jsonschema:"The number of results; 5 if absent, up to 25."`
}

type websearchOutput struct {
	Results []SearchResult `json:"results"`
}

// newWebsearchCard returns the card that searches the web.
func newWebsearchCard(c deck.Context) (drawbridge.Card, error) {
	search, err := deck.Handle[WebSearch](c, WebSearchKey)
	if err != nil {
		return nil, err
	}
	return foreignCard{newShipped(Description[websearchInput]{
		Name: "websearch", Title: "Search the web", Text: websearchText, Scopes: []drawbridge.Scope{ScopeWeb}, AcceptsText: true,
		Annotations: &Annotations{ReadOnly: true, OpenWorld: true},
		Examples:    []websearchInput{{Query: "go generics type inference"}, {Query: "site:go.dev race detector", Count: 10}},
	}, func(ctx context.Context, _ drawbridge.Call, in websearchInput) (answer Answer[websearchOutput], err error) {
		query := strings.TrimSpace(in.Query)
		switch {
		case query == "" || len(query) > maxQuery:
			return answer, ToolError(fmt.Sprintf("query must have from 1 to %d bytes.", maxQuery))
		case in.Count < 0 || in.Count > webpage.MaxCount:
			return answer, ToolError(fmt.Sprintf("count must be from 1 to %d.", webpage.MaxCount))
		case search == nil:
			return answer, ToolError("No search provider is set. A person can set search in [deck] of drawbridge.toml to " +
				strings.Join(webpage.SearchProviders(), ", ") + ".")
		}
		found, err := search.Search(ctx, query, cmp.Or(in.Count, webpage.DefaultCount))
		if err != nil {
			return answer, ToolError("Could not search: " + safetext.Line(err.Error()) + ".")
		}
		var text strings.Builder
		for i, r := range found {
			fmt.Fprintf(&text, "%d. %s\n   %s\n", i+1, cmp.Or(r.Title, r.URL), r.URL)
			if r.Snippet != "" {
				fmt.Fprintf(&text, "   %s\n", r.Snippet)
			}
		}
		if len(found) == 0 {
			text.WriteString("Nothing was found.\n")
		}
		return Answer[websearchOutput]{Text: text.String(), Value: websearchOutput{Results: append([]SearchResult{}, found...)}}, nil
	})}, nil
}
