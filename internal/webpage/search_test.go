package webpage

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
)

const key = "k-123-secret"

func findKey(context.Context) (drawbridge.Secret, error) { return drawbridge.NewSecret(key), nil }

// serve answers every request with a status and a body, and keeps the last request and its body.
func serve(t *testing.T, status int, answer []byte) (base string, last *http.Request, body *[]byte) {
	last, body = new(http.Request), new([]byte)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*body, _ = io.ReadAll(r.Body)
		*last = *r
		if status == http.StatusFound {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
		_, _ = w.Write(answer)
	}))
	t.Cleanup(s.Close)
	return s.URL, last, body
}

func answer(t *testing.T, name string) []byte {
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestProviders asks each provider, and compares the request and the results.
func TestProviders(t *testing.T) {
	want := []Result{{"Go & more", "https://go.dev/", "The Go language, by words."}, {"Other", "https://example.com/a?b=c", ""}}
	for name, c := range map[string]struct{ method, path, header, file, body string }{
		"brave":      {"GET", "/res/v1/web/search?count=20&q=go+%26+x", "X-Subscription-Token: " + key, "brave.json", ""},
		"tavily":     {"POST", "/search", "Authorization: Bearer " + key, "tavily.json", `{"max_results":20,"query":"go \u0026 x"}`},
		"exa":        {"POST", "/search", "X-Api-Key: " + key, "exa.json", `{"contents":{"highlights":true},"numResults":25,"query":"go \u0026 x"}`},
		"searxng":    {"GET", "/search?format=json&q=go+%26+x", "Authorization: Bearer " + key, "searxng.json", ""},
		"duckduckgo": {"POST", "/html/", "Content-Type: application/x-www-form-urlencoded", "duckduckgo.html", "b=&q=go+%26+x"},
	} {
		base, last, body := serve(t, http.StatusOK, answer(t, c.file))
		s, err := NewSearcher(SearchOptions{Provider: name, BaseURL: base, FindKey: findKey})
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Search(t.Context(), "go & x", 100)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		header, value, _ := strings.Cut(c.header, ": ")
		if last.Method != c.method || last.URL.String() != c.path || last.Header.Get(header) != value || string(*body) != c.body {
			t.Errorf("%s: request %s %s %v %s", name, last.Method, last.URL, last.Header, *body)
		}
		if got, err := s.Search(t.Context(), "go & x", 1); err != nil || len(got) != 1 {
			t.Errorf("%s: %d results, %v", name, len(got), err)
		}
	}
}

func TestEveryProviderOfTheSettingsIsThere(t *testing.T) {
	if names := slices.Sorted(maps.Keys(providers())); !slices.Equal(names, slices.Sorted(slices.Values(SearchProviders()))) {
		t.Errorf("providers: %v; the settings accept %v", names, SearchProviders())
	}
}

func TestNewSearcherRefuses(t *testing.T) {
	for want, o := range map[string]SearchOptions{
		`unknown search provider "bing"`:                        {Provider: "bing"},
		"Brave needs a key: set search_key in [deck]":           {Provider: "brave"},
		"SearXNG needs an address: set search_url in [deck]":    {Provider: "searxng"},
		"the address of the search provider is not a valid URL": {Provider: "searxng", BaseURL: "http:///x"},
	} {
		if _, err := NewSearcher(o); err == nil || err.Error() != want {
			t.Errorf("%+v: %v; want %s", o, err, want)
		}
	}
}

// TestErrors checks that errors say what to do, and contain neither the key nor a text of the answer.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		provider string
		status   int
		answer   string
		want     string
	}{
		{"brave", 401, key, "ask Brave: it refused the request (status 401): check search_key in [deck]"},
		{"searxng", 403, key, `ask SearXNG: it refused the request (status 403): check search_key in [deck], and that the server allows the format "json"`},
		{"tavily", 429, key, "ask Tavily: it allows no more requests now (status 429)"},
		{"exa", 302, key, "ask Exa: it answered with status 302"},
		{"exa", 500, key, "ask Exa: it answered with status 500"},
		{"exa", 200, "<html>" + key, "read the answer of Exa: it is not the expected JSON"},
		{"duckduckgo", 202, key, "ask DuckDuckGo: it answered with status 202"},
		{"duckduckgo", 200, `<div class="anomaly-modal">`, "read the answer of DuckDuckGo: it asks whether a person is searching; set a provider with a key with search in [deck]"},
		{"brave", 200, strings.Repeat(" ", maxAnswer+1), "ask Brave: the answer is longer than 4194304 bytes"},
	} {
		base, _, _ := serve(t, c.status, []byte(c.answer))
		s, err := NewSearcher(SearchOptions{Provider: c.provider, BaseURL: base, FindKey: findKey})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Search(t.Context(), "secret query", 5); err == nil || err.Error() != c.want {
			t.Errorf("%s %d: %v; want %s", c.provider, c.status, err, c.want)
		}
	}
	s, err := NewSearcher(SearchOptions{Provider: "exa", BaseURL: "http://127.0.0.1:1", FindKey: findKey})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = s.Search(t.Context(), "secret query", 5); err == nil || strings.Contains(err.Error(), "secret query") {
		t.Errorf("no server: %v", err)
	}
	s.options.FindKey = func(context.Context) (drawbridge.Secret, error) {
		return drawbridge.Secret{}, errors.New("no such entry")
	}
	if _, err = s.Search(t.Context(), "x", 5); err == nil || err.Error() != "ask Exa: find its key: no such entry" {
		t.Errorf("%v", err)
	}
}

// FuzzSearchAnswers checks that every answer gives bounded results with web addresses, each once.
func FuzzSearchAnswers(f *testing.F) {
	for _, name := range []string{"brave.json", "exa.json", "duckduckgo.html"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		for name, p := range providers() {
			all, err := p.parse(answer)
			if err != nil {
				continue
			}
			seen := map[string]bool{}
			for _, r := range cleanResults(all, MaxCount) {
				u, err := url.Parse(r.URL)
				if err != nil || u.Scheme != "http" && u.Scheme != "https" || seen[r.URL] || len(r.Title) > maxTitle+3 ||
					len(r.Snippet) > maxSnippet+3 || strings.ContainsAny(r.Title+r.Snippet, "\n\r") {
					t.Errorf("%s: %+v", name, r)
				}
				seen[r.URL] = true
				if _, err := json.Marshal(r); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
