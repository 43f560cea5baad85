package webpage

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzText checks that every page becomes a valid text.
func FuzzText(f *testing.F) {
	f.Add("<title>x</title><article><p>text</p></article>", "text/html", true)
	f.Add(strings.Repeat("<table><tr><td>", 50), "text/html", false)
	f.Add("\xff\xfe", "text/plain", false)
	f.Fuzz(func(t *testing.T, body, kind string, readable bool) {
		p := Page{URL: "https://example.com/a", Type: kind, Body: []byte(body)}
		title, text, err := p.Text(t.Context(), readable)
		if err == nil && (!utf8.ValidString(title) || !utf8.ValidString(text) || len(title) > maxTitle) {
			t.Errorf("title %q, text %q", title, text)
		}
	})
}

// TestHostilePages checks that pages which are made to cost time are read in a bounded time.
func TestHostilePages(t *testing.T) {
	for name, body := range map[string]string{
		"deep":       strings.Repeat("<div>", 200_000),
		"tables":     strings.Repeat("<table><tr><td>x", 20_000),
		"lists":      strings.Repeat("<ul><li>x", 20_000),
		"links":      strings.Repeat(`<a href="/x">y</a>`, 50_000),
		"attributes": "<p " + strings.Repeat(`a="b" `, 100_000) + ">x",
		"entities":   strings.Repeat("&amp;", 200_000),
		"bold":       strings.Repeat("<b><i>x", 20_000),
	} {
		start := time.Now()
		p := Page{URL: "https://example.com/", Type: "text/html", Body: []byte(body)}
		for _, readable := range []bool{true, false} {
			if _, _, err := p.Text(t.Context(), readable); err != nil && !strings.Contains(err.Error(), "512 nodes") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s took %s", name, took)
		}
	}
}
