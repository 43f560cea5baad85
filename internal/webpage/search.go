package webpage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/safehttp"
)

// The limits of a search.
const (
	SearchTimeout = 10 * time.Second
	DefaultCount  = 5
	MaxCount      = 25

	maxAnswer  = 4 << 20
	maxSnippet = 600
)

// A Result is a page that a provider found. Snippet is a part of the page's text, without markup.
type Result struct {
	Title   string `json:"title"`
	URL     string `json:"url"`
	Snippet string `json:"snippet,omitempty"`
}

// SearchOptions select and configure the search provider of a Searcher.
type SearchOptions struct {
	// Provider is one of SearchProviders. BaseURL is its address; empty means the provider's default address.
	Provider, BaseURL string
	// FindKey returns the key; a nil FindKey means no key.
	FindKey func(context.Context) (drawbridge.Secret, error)
}

// SearchProviders returns the names of the providers that the settings accept, without "none".
func SearchProviders() []string {
	return slices.DeleteFunc(config.SearchProviders(), func(name string) bool { return name == "none" })
}

// A Searcher searches with one provider.
type Searcher struct {
	options  SearchOptions
	provider provider
	client   *http.Client
}

// A provider describes the API of a search provider.
type provider struct {
	title, baseURL string
	needsKey       bool
	// request returns the request for a search. parse returns the results in a response.
	request func(query string, count int, key string) searchRequest
	parse   func(answer []byte) ([]Result, error)
}

// A searchRequest is the HTTP request for a search. Without a body, its method is GET.
type searchRequest struct {
	path   string
	query  url.Values
	header map[string]string
	// form and object are the body; at most one of them is set.
	form   url.Values
	object map[string]any
}

// NewSearcher returns a searcher. It returns an error for an unknown provider, a missing key or a missing address.
func NewSearcher(o SearchOptions) (*Searcher, error) {
	p, ok := providers()[o.Provider]
	switch {
	case !ok:
		return nil, fmt.Errorf("unknown search provider %q", o.Provider)
	case p.needsKey && o.FindKey == nil:
		return nil, fmt.Errorf("%s needs a key: set search_key in [deck]", p.title)
	case p.baseURL == "" && o.BaseURL == "":
		return nil, fmt.Errorf("%s needs an address: set search_url in [deck]", p.title)
	}
	if o.BaseURL == "" {
		o.BaseURL = p.baseURL
	}
	base, err := url.Parse(o.BaseURL)
	if err != nil || base.Hostname() == "" {
		return nil, errors.New("the address of the search provider is not a valid URL")
	}
	client := safehttp.NewPageClient(base.Hostname())
	// A redirect would send the query, and a key in a header of the provider, to another host.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Searcher{options: o, provider: p, client: client}, nil
}

// Search returns at most count results, best first, each URL once. Titles and snippets have no line breaks. The errors
// name the provider, but never contain the key or a text of the response.
func (s *Searcher) Search(ctx context.Context, query string, count int) ([]Result, error) {
	ctx, cancel := context.WithTimeout(ctx, SearchTimeout)
	defer cancel()
	req, err := s.newRequest(ctx, query, min(max(count, 1), MaxCount))
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", s.provider.title, err)
	}
	answer, err := s.send(req)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", s.provider.title, err)
	}
	results, err := s.provider.parse(answer)
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", s.provider.title, err)
	}
	return cleanResults(results, count), nil
}

func (s *Searcher) newRequest(ctx context.Context, query string, count int) (*http.Request, error) {
	key := ""
	if s.options.FindKey != nil {
		secret, err := s.options.FindKey(ctx)
		if err != nil {
			return nil, fmt.Errorf("find its key: %w", err)
		}
		key = secret.Reveal()
	}
	base, err := url.Parse(s.options.BaseURL)
	if err != nil {
		return nil, errors.New("its address is not a valid URL")
	}
	r := s.provider.request(query, count, key)
	address := base.JoinPath(r.path)
	address.RawQuery = r.query.Encode()
	method, contentType, body := http.MethodGet, "", []byte(nil)
	switch {
	case r.object != nil:
		method, contentType = http.MethodPost, "application/json"
		if body, err = json.Marshal(r.object); err != nil {
			return nil, err
		}
	case r.form != nil:
		method, contentType, body = http.MethodPost, "application/x-www-form-urlencoded", []byte(r.form.Encode())
	}
	req, err := http.NewRequestWithContext(ctx, method, address.String(), bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("its address is not a valid URL")
	}
	req.Header.Set("User-Agent", safehttp.UserAgent)
	req.Header.Set("Accept", "application/json, text/html;q=0.5")
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	return req, nil
}

// send sends the request and returns the body of the response. It returns an error if the status is not 200.
func (s *Searcher) send(req *http.Request) ([]byte, error) {
	resp, err := s.client.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			if e.Timeout() {
				return nil, fmt.Errorf("no answer within %s", SearchTimeout)
			}
			err = e.Err // without the URL, which contains the query
		}
		return nil, err
	}
	defer resp.Body.Close()
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return nil, fmt.Errorf("it refused the request (status %d): check search_key in [deck]%s", code,
			map[bool]string{true: `, and that the server allows the format "json"`}[s.options.Provider == "searxng"])
	case code == http.StatusTooManyRequests:
		return nil, fmt.Errorf("it allows no more requests now (status %d)", code)
	default:
		return nil, fmt.Errorf("it answered with status %d", code)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = errors.New("the answer is longer than " + strconv.Itoa(maxAnswer) + " bytes")
	}
	return body, err
}

// cleanResults returns the first count results that have a valid URL, each URL once. It shortens titles and snippets,
// and removes their line breaks.
func cleanResults(results []Result, count int) (kept []Result) {
	seen := map[string]bool{}
	for _, r := range results {
		u, err := url.Parse(strings.TrimSpace(r.URL))
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || len(kept) == count {
			continue
		}
		r.URL = u.String()
		if key := strings.TrimSuffix(r.URL, "/"); !seen[key] && len(r.URL) <= safehttp.MaxURLBytes {
			seen[key] = true
			r.Title, r.Snippet = line(r.Title, maxTitle), line(r.Snippet, maxSnippet)
			kept = append(kept, r)
		}
	}
	return kept
}
