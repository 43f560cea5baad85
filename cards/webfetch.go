package cards

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed" // the description
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/safehttp"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/webpage"
	lru "github.com/hashicorp/golang-lru/v2"
)

//go:embed webfetch.md
var webfetchText string

// The limits of the card webfetch.
const (
	maxPageText    = 64 << 10
	cachedPages    = 30
	cachedPageTime = 15 * time.Minute
)

// ScopeWeb is the scope of the cards that send requests to the web.
const ScopeWeb drawbridge.Scope = "web"

// A WebClient sends the requests of the card webfetch. It must reach public addresses only.
type WebClient = *http.Client

type webfetchInput struct {
	URL      string `json:"url" jsonschema:"The address, https or http."`
	Whole    bool   `json:"whole,omitempty" jsonschema:"Return the whole page, with menus and footers."`
	Offset   int    `json:"offset,omitempty" jsonschema:"The byte of the text to start at."`
	MaxBytes int64  `json:"maxBytes,omitempty" jsonschema:"How much of the page to fetch; 1048576 if absent, up to 5242880."`
}

type webfetchOutput struct {
	// URL is the address of the response. Redirects are the addresses that redirected to it.
	URL       string   `json:"url"`
	Redirects []string `json:"redirects,omitempty"`
	Status    int      `json:"status"`
	Type      string   `json:"type"`
	Title     string   `json:"title,omitempty"`
	// Bytes is the size of the whole text. Next is the offset at which the next call can continue; 0 if the text was
	// returned to its end.
	Bytes int `json:"bytes"`
	Next  int `json:"next,omitempty"`
	// Cut reports whether the page is longer than the fetched part.
	Cut bool `json:"cut,omitempty"`
}

// A webBackend fetches pages for the card webfetch.
type webBackend struct {
	client WebClient
	trail  *deck.ReadTrail
	// pages contains recently fetched pages. The key consists of the principal, the URL and the size limit.
	pages *lru.Cache[string, cachedPage]
	now   func() time.Time
}

type cachedPage struct {
	page    webpage.Page
	fetched time.Time
}

func newWebBackend(c deck.Context) (b webBackend, err error) {
	if b.client, err = deck.Handle[WebClient](c, WebClientKey); err != nil {
		return b, err
	}
	b.client = cmp.Or(b.client, safehttp.NewPageClient())
	b.trail, err = deck.Handle[*deck.ReadTrail](c, ReadTrailKey)
	if err != nil {
		return b, err
	}
	b.now = time.Now
	b.pages, err = lru.New[string, cachedPage](cachedPages)
	return b, err
}

// newWebfetchCard returns the card that fetches pages.
func newWebfetchCard(c deck.Context) (drawbridge.Card, error) {
	b, err := newWebBackend(c)
	if err != nil {
		return nil, err
	}
	return foreignCard{newShipped(Description[webfetchInput]{
		Name: "webfetch", Title: "Fetch page", Text: webfetchText, Scopes: []drawbridge.Scope{ScopeWeb}, AcceptsText: true, TextForScripts: true,
		Annotations: &Annotations{ReadOnly: true, OpenWorld: true},
		Examples:    []webfetchInput{{URL: "https://go.dev/doc/effective_go"}, {URL: "https://go.dev/ref/spec", Offset: 65536}},
	}, func(ctx context.Context, call drawbridge.Call, in webfetchInput) (Answer[webfetchOutput], error) {
		return b.fetch(ctx, call.Caller, in)
	})}, nil
}

// A foreignCard is a card whose results contain texts of third parties, such as web pages.
type foreignCard struct{ drawbridge.Card }

var _ deck.ForeignCard = foreignCard{}

// ReturnsForeignTexts implements [deck.ForeignCard].
func (foreignCard) ReturnsForeignTexts() bool { return true }

func (b webBackend) fetch(ctx context.Context, caller drawbridge.Caller, in webfetchInput) (answer Answer[webfetchOutput], err error) {
	switch {
	case in.Offset < 0:
		return answer, ToolError("offset must be 0 or more.")
	case in.MaxBytes < 0 || in.MaxBytes > webpage.MaxBytes:
		return answer, ToolError(fmt.Sprintf("maxBytes must be from 1 to %d.", webpage.MaxBytes))
	}
	page, err := b.page(ctx, caller, in)
	if err != nil {
		return answer, ToolError("Could not fetch " + safetext.Line(in.URL) + ": " + safetext.Line(err.Error()) + ".")
	}
	b.trail.Add(deck.RunOf(caller), deck.Source{Kind: "page", Name: page.URL, Digest: sha256.Sum256(page.Body),
		Call: audit.CallID(ctx)})
	out := webfetchOutput{URL: page.URL, Redirects: page.Via, Status: page.Status, Type: page.Type, Cut: page.Cut}
	failed := page.Status < 200 || page.Status > 299
	if strings.HasPrefix(page.Type, "image/") && !page.Cut && !failed {
		out.Bytes = len(page.Body)
		return Answer[webfetchOutput]{Text: out.header(), Value: out,
			Blocks: []json.RawMessage{imageBlock(base64.StdEncoding.EncodeToString(page.Body), page.Type)}}, nil
	}
	title, text, err := page.Text(ctx, !in.Whole)
	if err != nil {
		return Answer[webfetchOutput]{Text: out.header() + "Could not read the page: " + safetext.Line(err.Error()) + ".\n", Value: out, IsError: true}, nil
	}
	out.Title, out.Bytes = title, len(text)
	if in.Offset > len(text) {
		return answer, ToolError(fmt.Sprintf("offset %d is past the end: the text has %d bytes.", in.Offset, len(text)))
	}
	shown := strings.ToValidUTF8(safetext.Truncate(text[in.Offset:], maxPageText, safetext.Bytes, ""), "")
	if in.Offset+len(shown) < len(text) {
		out.Next = in.Offset + len(shown)
	}
	return Answer[webfetchOutput]{Text: out.header() + shown + out.footer(in.Offset, len(shown)), Value: out, Plain: &shown, IsError: failed}, nil
}

// page returns a page from the cache, or fetches it.
func (b webBackend) page(ctx context.Context, caller drawbridge.Caller, in webfetchInput) (webpage.Page, error) {
	limit := cmp.Or(in.MaxBytes, webpage.DefaultBytes)
	key := fmt.Sprintf("%q %q %d", caller.Principal, in.URL, limit)
	if kept, ok := b.pages.Get(key); ok && b.now().Sub(kept.fetched) < cachedPageTime {
		return kept.page, nil
	}
	page, err := webpage.Fetch(ctx, b.client, in.URL, limit)
	if err == nil && page.Status == http.StatusOK && len(page.Body) <= webpage.DefaultBytes {
		b.pages.Add(key, cachedPage{page, b.now()})
	}
	return page, err
}

// header returns the title, the addresses and the status of a page.
func (o webfetchOutput) header() string {
	var text strings.Builder
	if o.Title != "" {
		fmt.Fprintf(&text, "# %s\n", o.Title)
	}
	fmt.Fprintf(&text, "%s\n", strings.Join(slices.Concat(o.Redirects, []string{o.URL}), " → "))
	if o.Status != http.StatusOK {
		fmt.Fprintf(&text, "Status: %d %s\n", o.Status, http.StatusText(o.Status))
	}
	return text.String() + "\n"
}

// footer returns a note that tells the model how to get the rest of an incomplete text.
func (o webfetchOutput) footer(from, shown int) string {
	switch {
	case o.Next > 0:
		return fmt.Sprintf("\n[bytes %d–%d of %d; go on with offset %d]\n", from, from+shown, o.Bytes, o.Next)
	case o.Cut:
		return "\n[the page is longer; fetch more of it with maxBytes]\n"
	}
	return "\n"
}
