package webpage

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"golang.org/x/net/html"
)

// providers returns the search providers by their names in the settings.
func providers() map[string]provider {
	return map[string]provider{
		"brave": {title: "Brave", baseURL: "https://api.search.brave.com", needsKey: true,
			request: func(query string, count int, key string) searchRequest {
				// Brave accepts a count of at most 20.
				return searchRequest{path: "/res/v1/web/search", header: map[string]string{"X-Subscription-Token": key},
					query: numbered(url.Values{"q": {query}}, "count", min(count, 20))}
			},
			parse: func(answer []byte) ([]Result, error) {
				var a struct {
					Web struct{ Results []item }
				}
				err := decodeAnswer(answer, &a)
				return results(a.Web.Results), err
			}},
		"tavily": {title: "Tavily", baseURL: "https://api.tavily.com", needsKey: true,
			request: func(query string, count int, key string) searchRequest {
				// Tavily accepts at most 20 results.
				return searchRequest{path: "/search", header: map[string]string{"Authorization": "Bearer " + key},
					object: map[string]any{"query": query, "max_results": min(count, 20)}}
			},
			parse: parseItems},
		"exa": {title: "Exa", baseURL: "https://api.exa.ai", needsKey: true,
			request: func(query string, count int, key string) searchRequest {
				return searchRequest{path: "/search", header: map[string]string{"x-api-key": key},
					object: map[string]any{"query": query, "numResults": count,
						"contents": map[string]any{"highlights": true}}}
			},
			parse: parseItems},
		"searxng": {title: "SearXNG",
			request: func(query string, _ int, key string) searchRequest {
				r := searchRequest{path: "/search", query: url.Values{"q": {query}, "format": {"json"}}}
				if key != "" { // for a server behind a proxy that requires a key
					r.header = map[string]string{"Authorization": "Bearer " + key}
				}
				return r
			},
			parse: parseItems},
		"duckduckgo": {title: "DuckDuckGo", baseURL: "https://html.duckduckgo.com",
			request: func(query string, _ int, _ string) searchRequest {
				return searchRequest{path: "/html/", form: url.Values{"q": {query}, "b": {""}}}
			},
			parse: parseDuckDuckGo},
	}
}

func numbered(values url.Values, name string, n int) url.Values {
	values.Set(name, strconv.Itoa(n))
	return values
}

// An item is a result in the JSON of a provider. Providers name the text of a result differently.
type item struct {
	Title, URL                 string
	Description, Content, Text string
	Highlights                 []string
}

// parseItems parses a response with the member results at its top level.
func parseItems(answer []byte) ([]Result, error) {
	var a struct{ Results []item }
	err := decodeAnswer(answer, &a)
	return results(a.Results), err
}

func decodeAnswer(answer []byte, to any) error {
	if err := json.Unmarshal(answer, to); err != nil {
		return errors.New("it is not the expected JSON") // the decoder's error may quote the response
	}
	return nil
}

func results(items []item) []Result {
	all := make([]Result, len(items))
	for i, it := range items {
		snippet := cmp.Or(it.Description, it.Content, strings.Join(it.Highlights, " … "), it.Text)
		all[i] = Result{Title: withoutMarkup(it.Title), URL: it.URL, Snippet: withoutMarkup(snippet)}
	}
	return all
}

// withoutMarkup returns a text without HTML elements and entities, with which providers mark the words of the query.
func withoutMarkup(text string) string {
	if !strings.ContainsAny(text, "<&") {
		return text
	}
	nodes, err := html.ParseFragment(strings.NewReader(text), nil)
	if err != nil {
		return text
	}
	var b strings.Builder
	for _, n := range nodes {
		appendText(&b, n)
	}
	return b.String()
}

func appendText(b *strings.Builder, n *html.Node) {
	if n.Type == html.TextNode {
		b.WriteString(n.Data)
	}
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
}

// parseDuckDuckGo parses DuckDuckGo's page of results for browsers without scripts. A result is an element with the
// class result. Its link has the class result__a, its text the class result__snippet. Advertisements have the class
// result--ad.
func parseDuckDuckGo(answer []byte) (all []Result, err error) {
	doc, err := html.Parse(bytes.NewReader(answer))
	if err != nil {
		return nil, errors.New("it is not HTML")
	}
	for n := range doc.Descendants() {
		switch {
		case hasClass(n, "anomaly-modal"):
			return nil, errors.New("it asks whether a person is searching; set a provider with a key with search in [deck]")
		case !hasClass(n, "result") || hasClass(n, "result--ad"):
			continue
		}
		var r Result
		for d := range n.Descendants() {
			var b strings.Builder
			switch {
			case hasClass(d, "result__a"):
				appendText(&b, d)
				r.Title, r.URL = b.String(), linkTarget(attribute(d, "href"))
			case hasClass(d, "result__snippet"):
				appendText(&b, d)
				r.Snippet = b.String()
			}
		}
		all = append(all, r)
	}
	return all, nil
}

// linkTarget returns the target address of a link of DuckDuckGo. The link may contain the target in its parameter uddg.
func linkTarget(link string) string {
	u, err := url.Parse(link)
	if err != nil {
		return ""
	}
	if to := u.Query().Get("uddg"); to != "" {
		return to
	}
	return link
}

func hasClass(n *html.Node, class string) bool {
	return slices.Contains(strings.Fields(attribute(n, "class")), class)
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// line returns a text in one line of at most max bytes.
func line(text string, max int) string {
	return safetext.Truncate(strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " "), max, safetext.Bytes, "…")
}
