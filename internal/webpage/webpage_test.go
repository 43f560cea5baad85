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

// TestMainPart checks what is left of a page, and that a page which marks nothing stays whole.
func TestMainPart(t *testing.T) {
	const long = "<p>A text that is long enough to be the main part of its page.</p>"
	for name, c := range map[string][2]string{
		"main":              {"<header>H</header><div><p>Before</p><main>" + long + "</main><p>After</p></div>", "long"},
		"role":              {"<div role=main>" + long + "</div><div role=navigation>N</div><p>Beside</p>", "long"},
		"article":           {"<nav>N</nav><article><header>By A</header>" + long + "<footer>End</footer></article><footer>F</footer>", "By A long End"},
		"many articles":     {"<article>One</article><nav>N</nav><article>Two</article>", "One Two"},
		"empty main":        {"<main></main>" + long + long, "long long"},
		"nothing":           {"<h1>T</h1>" + long, "T long"},
		"hidden":            {"<p hidden>x</p><p aria-hidden=true>y</p><form>z</form><aside>w</aside>" + long, "long"},
		"nested main":       {"<nav>N</nav><article><main>" + long + "</main></article>", "long"},
		"frameset, no body": {"<frameset><frame></frameset>", ""},
	} {
		p := Page{URL: "https://example.com/", Type: "text/html", Body: []byte(c[0])}
		_, text, err := p.Text(t.Context(), true)
		got := strings.Join(strings.Fields(strings.NewReplacer("A text that is long enough to be the main part of its page.",
			"long", "#", "").Replace(text)), " ")
		if err != nil || got != c[1] {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c[1])
		}
	}
}
