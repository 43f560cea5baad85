// Package webpage fetches web pages, and converts them to text that a model can read. It also sends searches to search
// providers: Brave, Tavily, Exa, a SearXNG server, or DuckDuckGo. It limits the time, the bytes and the redirects of a
// fetch. The HTTP client that the caller passes determines which addresses a fetch may reach, see
// safehttp.NewPageClient.
package webpage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"github.com/drawbridge-mcp/drawbridge/internal/safehttp"
	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"
)

// The limits of a fetch.
const (
	Timeout      = 30 * time.Second
	DefaultBytes = 1 << 20
	MaxBytes     = 5 << 20
)

// A Page is the response to a fetch.
type Page struct {
	// URL is the address of the response. Via are the addresses that redirected to it.
	URL string
	Via []string
	// Status is the HTTP status. Type is the media type without parameters.
	Status int
	Type   string
	// Body is the body of the response, at most as many bytes as Fetch was allowed to read. A text is converted to
	// UTF-8. Cut reports whether the response was longer.
	Body []byte
	Cut  bool
}

// Fetch requests a page with GET. maxBytes limits the body. A response with an error status is also returned as a Page.
// The error names the failed step, and the reason if the address was refused.
func Fetch(ctx context.Context, client *http.Client, address string, maxBytes int64) (Page, error) {
	if u, err := url.Parse(address); err == nil {
		address = u.String() // escapes characters that people write unescaped
	}
	if err := safehttp.CheckPageURL(address); err != nil {
		return Page{}, fmt.Errorf("the URL %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return Page{}, err
	}
	req.Header.Set("User-Agent", safehttp.UserAgent)
	req.Header.Set("Accept", "text/html, application/xhtml+xml, text/markdown;q=0.9, text/plain;q=0.9, */*;q=0.5")
	resp, err := client.Do(req)
	if err != nil {
		return Page{}, describe(err)
	}
	defer resp.Body.Close()
	page := Page{URL: resp.Request.URL.String(), Status: resp.StatusCode, Via: redirects(resp)}
	page.Type, _, _ = mime.ParseMediaType(resp.Header.Get("Content-Type"))
	page.Body, err = io.ReadAll(io.LimitReader(resp.Body, maxBytes+1))
	if err != nil {
		return page, fmt.Errorf("read the page: %w", err)
	}
	if page.Cut = int64(len(page.Body)) > maxBytes; page.Cut {
		page.Body = page.Body[:maxBytes]
	}
	if page.Type == "" || page.Type == "application/octet-stream" {
		page.Type, _, _ = mime.ParseMediaType(http.DetectContentType(page.Body))
	}
	if page.IsText() {
		page.Body = toUTF8(page.Body, resp.Header.Get("Content-Type"))
	}
	return page, nil
}

// describe returns the cause of a failed request without its URL. If the address is not public, the text says how a
// person can allow its host.
func describe(err error) error {
	switch {
	case errors.Is(err, safehttp.ErrForbidden):
		return errors.New("the address is unassigned, or one where machines get their credentials")
	case errors.Is(err, safehttp.ErrNotPublic):
		return errors.New("the address is not public (a person can allow its host with fetch_hosts in [deck])")
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		if u.Timeout() {
			return fmt.Errorf("no answer within %s", Timeout)
		}
		return u.Err
	}
	return err
}

// redirects returns the addresses that led to a response, first to last.
func redirects(resp *http.Response) (via []string) {
	for r := resp.Request.Response; r != nil; r = r.Request.Response {
		via = append([]string{r.Request.URL.String()}, via...)
	}
	return via
}

// toUTF8 converts a text to UTF-8. It returns body unchanged if that fails.
func toUTF8(body []byte, contentType string) []byte {
	r, err := charset.NewReader(bytes.NewReader(body), contentType)
	if err != nil {
		return body
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return body
	}
	return text
}

// IsHTML reports whether the page is HTML.
func (p Page) IsHTML() bool { return p.Type == "text/html" || p.Type == "application/xhtml+xml" }

// IsPDF reports whether the page is a PDF file.
func (p Page) IsPDF() bool { return p.Type == "application/pdf" || p.Type == "application/x-pdf" }

// IsText reports whether the body is a text.
func (p Page) IsText() bool {
	return strings.HasPrefix(p.Type, "text/") || p.IsHTML() || strings.HasSuffix(p.Type, "json") ||
		strings.HasSuffix(p.Type, "xml") || strings.HasSuffix(p.Type, "yaml") || p.Type == "application/javascript"
}

// Text returns the title and the text of a page: HTML as Markdown, the text of a PDF file, other texts unchanged. If
// readable is true, only the main part of an HTML page is returned, without menus and footers. It returns an error for
// a page that is not a text.
func (p Page) Text(ctx context.Context, readable bool) (title, text string, err error) {
	switch {
	case p.IsPDF():
		text, err = readPDF(ctx, p.Body)
		return "", text, err
	case !p.IsText():
		return "", "", fmt.Errorf("%s is not the type of a text", p.Type)
	case !p.IsHTML():
		return "", string(bytes.ToValidUTF8(p.Body, []byte("\uFFFD"))), nil
	}
	doc, err := html.Parse(bytes.NewReader(p.Body))
	if err != nil {
		return "", "", fmt.Errorf("read the HTML: %w", err)
	}
	title = titleOf(doc)
	if readable {
		keepMainPart(doc)
	}
	markdown, err := newConverter().ConvertNode(doc, converter.WithDomain(p.URL), converter.WithContext(ctx))
	if err != nil {
		return title, "", fmt.Errorf("turn the HTML into Markdown: %w", err)
	}
	return title, strings.TrimSpace(strings.ToValidUTF8(string(markdown), "\uFFFD")), nil
}

func newConverter() *converter.Converter {
	return converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(),
		table.NewTablePlugin()))
}

// maxTitle is the maximum size of a title in bytes.
const maxTitle = 500

// titleOf returns the title of an HTML document.
func titleOf(doc *html.Node) string {
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "title" && n.FirstChild != nil {
			return line(n.FirstChild.Data, maxTitle)
		}
	}
	return ""
}
