package naming

import (
	"strings"
	"testing"
)

func TestTemplateMatch(t *testing.T) {
	for _, tt := range []struct {
		template string
		yes, no  []string
	}{
		{
			"test://template/{id}/data",
			[]string{"test://template/7/data", "test://template/a%2Fb/data", "test://template//data"},
			[]string{"test://template/7/8/data", "test://template/7/data/", "test://template/7", "x"},
		},
		{
			"file:///{+path}",
			[]string{"file:///etc/hosts", "file:///", "file:///a?b#c"},
			[]string{"file://etc/hosts"},
		},
		{
			"db://{table}{?limit,offset}",
			[]string{"db://users", "db://users?limit=2", "db://?a=/b", "db://users?"},
			[]string{"db://users/2"},
		},
		{
			"a{/b*}{.ext}",
			[]string{"a", "a/b/c", "a/b.txt", "a.txt"},
			[]string{"b", "ab"},
		},
		{
			"{scheme}://x{#frag}",
			[]string{"http://x", "://x#/y", "a://x#"},
			[]string{"http://xy", "a/b://x"},
		},
		{"plain", []string{"plain"}, []string{"", "plainer"}},
		{"", []string{""}, []string{"x"}},
	} {
		tmpl, ok := ParseTemplate(tt.template)
		if !ok {
			t.Errorf("%q is not a template", tt.template)
			continue
		}
		for _, uri := range tt.yes {
			if !tmpl.Matches(uri) {
				t.Errorf("%q does not match %q", tt.template, uri)
			}
		}
		for _, uri := range tt.no {
			if tmpl.Matches(uri) {
				t.Errorf("%q matches %q", tt.template, uri)
			}
		}
	}
}

func TestBrokenTemplates(t *testing.T) {
	for _, text := range []string{"a{b", "a}b", "a{}", "a{b{c}}", strings.Repeat("x", maxTemplate+1)} {
		if _, ok := ParseTemplate(text); ok {
			t.Errorf("%.20q is taken for a template", text)
		}
	}
}

// FuzzTemplate checks that a template without expressions matches itself alone, that every template matches its own
// text with the expressions left out, and that nothing panics.
func FuzzTemplate(f *testing.F) {
	f.Add("test://{a}/b{+c}", "test://x/b/y")
	f.Add("{/a}{?b}{;c}", "/x?y")
	f.Fuzz(func(t *testing.T, text, uri string) {
		tmpl, ok := ParseTemplate(text)
		if !ok {
			return
		}
		matches := tmpl.Matches(uri)
		if !strings.Contains(text, "{") && len(uri) <= MaxURI && matches != (text == uri) {
			t.Errorf("%q matches %q: %v", text, uri, matches)
		}
		var bare strings.Builder
		for rest := text; rest != ""; {
			before, after, _ := strings.Cut(rest, "{")
			bare.WriteString(before)
			_, rest, _ = strings.Cut(after, "}")
		}
		if !tmpl.Matches(bare.String()) {
			t.Errorf("%q does not match %q", text, bare.String())
		}
	})
}
