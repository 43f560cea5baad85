package cards

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safehttp"
)

const articlePage = `<!doctype html><html><head><title>A
 page &amp; more</title><style>p{}</style><script>alert(1)</script></head><body>
<nav><a href="/home">Home</a> <a href="/about">About</a></nav>
<article><h1>Locks</h1><p>%s A <a href="/mutex">mutex</a> is held by one goroutine, and others wait until it is released.</p>
<table><tr><th>Name</th><th>Cost</th></tr><tr><td>Mutex</td><td>25 ns</td></tr></table>
<pre><code class="language-go">mu.Lock()</code></pre></article><footer>Footer text</footer></body></html>`

// newSite serves the pages of the tests, and counts the requests.
func newSite(t *testing.T, requests *atomic.Int32) *httptest.Server {
	mux := http.NewServeMux()
	page := func(path, contentType, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			requests.Add(1)
			w.Header().Set("Content-Type", contentType)
			fmt.Fprint(w, body)
		})
	}
	page("/article", "text/html; charset=utf-8", fmt.Sprintf(articlePage, strings.Repeat("Programs need locks. ", 30)))
	page("/plain", "text/plain", "line\x1b[31m one\n")
	page("/latin", "text/html; charset=iso-8859-1", "<title>caf\xe9</title><p>caf\xe9</p>")
	page("/json", "application/json", `{"a": 1}`)
	page("/binary", "application/octet-stream", "\x00\x01\x02\x03")
	page("/pdf", "application/pdf", "%PDF-1.4 nothing")
	page("/image", "image/png", "\x89PNG\r\n\x1a\n")
	page("/long", "text/plain", strings.Repeat("0123456789", 20_000))
	page("/broken", "text/html", strings.Repeat("<div>", 20_000)+"deep")
	to := func(path, address string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, address, http.StatusFound) })
	}
	to("/moved", "/moved-again")
	to("/moved-again", "/json")
	to("/loop", "/loop")
	to("/metadata", "http://169.254.169.254/latest/meta-data/")
	to("/private", "http://10.0.0.1/")
	to("/script", "javascript:alert(1)")
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	site := httptest.NewServer(mux)
	t.Cleanup(site.Close)
	return site
}

func newWebBench(t *testing.T, requests *atomic.Int32) (*bench, *httptest.Server) {
	site := newSite(t, requests)
	return newBench(t, map[string]any{WebClientKey: WebClient(safehttp.NewPageClient("127.0.0.1"))}), site
}

func TestWebfetch(t *testing.T) {
	b, site := newWebBench(t, new(atomic.Int32))
	for path, want := range map[string][]string{
		"/article": {"# A page & more\n" + site.URL + "/article\n\n", "A [mutex](" + site.URL + "/mutex) is held",
			"| Mutex | 25 ns |", "```go\nmu.Lock()\n```"},
		"/latin":  {"# café\n", "\n\ncafé\n"},
		"/json":   {site.URL + "/json\n\n" + `{"a": 1}` + "\n"},
		"/moved":  {site.URL + "/moved → " + site.URL + "/moved-again → " + site.URL + "/json\n\n"},
		"/binary": {"Could not read the page: application/octet-stream is not the type of a text.\n"},
		"/pdf":    {"Could not read the page: "},
		"/none":   {"Status: 404 Not Found\n\n404 page not found"},
		"/broken": {"/broken\n\nCould not read the page: read the HTML: "},
	} {
		got := b.call("webfetch", `{"url":"`+site.URL+path+`"}`)
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("%s has no %q:\n%.2000s", path, part, got)
			}
		}
		if strings.Contains(got, "alert(1)") || strings.Contains(got, "Footer text") {
			t.Errorf("%s has scripts or a footer:\n%s", path, got)
		}
	}
	if got := b.call("webfetch", `{"url":"`+site.URL+`/article","whole":true}`); !strings.Contains(got, "Footer text") {
		t.Errorf("the whole page has no footer:\n%s", got)
	}
	image := b.result(drawbridge.Caller{}, "webfetch", `{"url":"`+site.URL+`/image"}`)
	if !strings.Contains(string(image), `"mimeType":"image/png"`) {
		t.Errorf("image: %s", image)
	}
	sources, _ := b.trail.Sources(deck.RunOf(drawbridge.Caller{Session: "one"}))
	if len(sources) == 0 {
		t.Error("the read trail is empty")
	}
	for _, s := range sources {
		if s.Kind != "page" || !strings.HasPrefix(s.Name, site.URL) || s.Digest == (deck.Digest{}) {
			t.Errorf("read trail: %+v", s)
		}
	}
}

func TestWebfetchInParts(t *testing.T) {
	requests := new(atomic.Int32)
	b, site := newWebBench(t, requests)
	address := `{"url":"` + site.URL + `/long"`
	if got := b.call("webfetch", address+`}`); !strings.HasSuffix(got, "\n[bytes 0–65536 of 200000; go on with offset 65536]\n") {
		t.Errorf("the first part ends in %q", got[len(got)-80:])
	}
	if got := b.call("webfetch", address+`,"offset":199995}`); !strings.HasSuffix(got, "\n\n56789\n") {
		t.Errorf("the last part ends in %q", got[max(0, len(got)-80):])
	}
	b.want("webfetch", address+`,"offset":200001}`, "offset 200001 is past the end: the text has 200000 bytes.")
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests; the page was not kept", n)
	}
	if got := b.call("webfetch", address+`,"maxBytes":100}`); !strings.HasSuffix(got, "\n[the page is longer; fetch more of it with maxBytes]\n") {
		t.Errorf("the cut page ends in %q", got[max(0, len(got)-80):])
	}
	// A page that one principal fetched is not answered to another one.
	before := requests.Load()
	b.as(drawbridge.Caller{Principal: "eve"}, "webfetch", address+`}`)
	if requests.Load() != before+1 {
		t.Error("another principal got the kept page")
	}
	b.want("webfetch", address+`,"maxBytes":5242881}`, "maxBytes must be from 1 to 5242880.")
	b.want("webfetch", address+`,"offset":-1}`, "offset must be 0 or more.")
}

// TestWebfetchRefuses tries the addresses that a page or a model must not reach.
func TestWebfetchRefuses(t *testing.T) {
	b, site := newWebBench(t, new(atomic.Int32))
	const notPublic = "the address is not public (a person can allow its host with fetch_hosts in [deck])."
	for address, want := range map[string]string{
		"file:///etc/passwd":              "the URL ",
		"ftp://example.com/":              "the URL must be https",
		"https://user:pw@example.com/":    "the URL is not a valid URL",
		"http://169.254.169.254/latest":   "the address is unassigned, or one where machines get their credentials.",
		"http://[fd00:ec2::254]/":         "the address is unassigned, or one where machines get their credentials.",
		"http://10.1.2.3/":                notPublic,
		"http://[::1]:1234/":              notPublic,
		"http://localhost:1234/":          notPublic,
		"http://0x7f.1:1234/":             "",
		"http://[::ffff:127.0.0.1]:1234/": notPublic,
		site.URL + "/metadata":            "the address is unassigned, or one where machines get their credentials.",
		site.URL + "/private":             notPublic,
		site.URL + "/script":              "redirect to a URL that",
		site.URL + "/loop":                "too many redirects",
		"http://127.0.0.1:22/":            "the URL has a port that is reserved for another protocol",
		"not a url":                       "the URL ",
		"":                                "the URL is not a valid URL",
	} {
		args := string(rawjson.Quote(address))
		got := b.call("webfetch", `{"url":`+args+`}`)
		if !strings.HasPrefix(got, "Could not fetch ") || !strings.Contains(got, want) {
			t.Errorf("%q: %q", address, got)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	result, err := b.box["webfetch"].Run(ctx, callWith([]byte(`{"url":"`+site.URL+`/slow"}`)))
	if err == nil && string(rawjson.Get(result.Raw, "isError")) != "true" {
		t.Errorf("a slow page: %s", result.Raw)
	}
}

type foundPages struct {
	found []SearchResult
	err   error
	count int
}

func (f *foundPages) Search(_ context.Context, _ string, count int) ([]SearchResult, error) {
	f.count = count
	return f.found, f.err
}

func TestWebsearch(t *testing.T) {
	newBench(t, nil).want("websearch", `{"query":"x"}`, "No search provider is set. A person can set search in [deck] of "+
		"drawbridge.toml to brave, tavily, exa, searxng, duckduckgo.")
	pages := &foundPages{found: []SearchResult{{Title: "Go", URL: "https://go.dev", Snippet: "A language."}, {URL: "https://x.test"}}}
	b := newBench(t, map[string]any{WebSearchKey: WebSearch(pages)})
	b.want("websearch", `{"query":"go"}`, "1. Go\n   https://go.dev\n   A language.\n2. https://x.test\n   https://x.test\n")
	if pages.count != 5 {
		t.Errorf("asked for %d results", pages.count)
	}
	b.want("websearch", `{"query":" "}`, "query must have from 1 to 2000 bytes.")
	b.want("websearch", `{"query":"x","count":26}`, "count must be from 1 to 25.")
	pages.found = nil
	b.want("websearch", `{"query":"x","count":25}`, "Nothing was found.\n")
	pages.err = &url.Error{Op: "Get", URL: "x", Err: errors.New("no\x1b route")}
	if got := b.call("websearch", `{"query":"x"}`); !strings.HasPrefix(got, "Could not search: ") || strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
}
