package workspace

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSplitMarkdown(t *testing.T) {
	for _, row := range []struct {
		text, head string
		blocks     []string
	}{
		{"", "", nil},
		{"one", "", []string{"one"}},
		{"\n\none\ntwo\n\n\nthree\n", "", []string{"\n\none\ntwo\n\n\n", "three\n"}},
		{"---\ntitle: x\n---\n\n# X\n\ntext", "---\ntitle: x\n---\n\n", []string{"# X\n\n", "text"}},
		{"---\r\na: b\r\n---\r\none\r\n\r\ntwo", "---\r\na: b\r\n---\r\n", []string{"one\r\n\r\n", "two"}},
		{"```go\na\n\nb\n```\n\nc", "", []string{"```go\na\n\nb\n```\n\n", "c"}},
		{"~~~\n\n```\n\n~~~\n\nd\n", "", []string{"~~~\n\n```\n\n~~~\n\n", "d\n"}},
		{"---\nnever ends\n\nx", "", []string{"---\nnever ends\n\n", "x"}},
		{"```\nopen\n\nend", "", []string{"```\nopen\n\nend"}},
		{"```\na\n```go\n\nb\n```\n\nc", "", []string{"```\na\n```go\n\nb\n```\n\n", "c"}},
	} {
		head, blocks := SplitMarkdown(row.text)
		if head != row.head || !slices.Equal(blocks, row.blocks) {
			t.Errorf("%q: %q %q, want %q %q", row.text, head, blocks, row.head, row.blocks)
		}
	}
}

func FuzzSplitMarkdown(f *testing.F) {
	f.Add("---\na: b\n---\n\n# Title\n\n```\n\n```\n\nx [[a|b]]")
	f.Fuzz(func(t *testing.T, text string) {
		head, blocks := SplitMarkdown(text)
		if got := head + strings.Join(blocks, ""); got != text {
			t.Errorf("joined %q, want %q", got, text)
		}
		for _, link := range Links(text) {
			if checkSlug(link.Slug) != nil {
				t.Errorf("the link %+v", link)
			}
		}
		if checkLine("", TitleOf(text, "file.md"), maxTitle) != nil {
			t.Errorf("the title %q", TitleOf(text, "file.md"))
		}
	})
}

func TestLinks(t *testing.T) {
	text := "See [[Plan]] and [[the plan|plan]], [[Übersicht 2]] `[[code]]` ``[[a` b]]`` [[ |x y]]\n" +
		"```\n[[fenced]]\n```\n[[after]] [[open [x] [[]]\n"
	want := []Link{{"Plan", "plan"}, {"Übersicht 2", "übersicht-2"}, {"", "x-y"}, {"after", "after"}}
	if diff := cmp.Diff(want, Links(text)); diff != "" {
		t.Error(diff)
	}
}

func TestSlugOf(t *testing.T) {
	for title, want := range map[string]string{"My Plan: 2026": "my-plan-2026", "  ": "page", "日本 語": "日本-語", "a--b": "a-b",
		strings.Repeat("x", 300): strings.Repeat("x", 199)} {
		if got := SlugOf(title); got != want {
			t.Errorf("%q: %q, want %q", title, got, want)
		}
		if err := checkSlug(SlugOf(title)); err != nil {
			t.Error(err)
		}
	}
}

func TestJoinOrigins(t *testing.T) {
	for _, row := range []struct {
		all  []Origin
		want Origin
	}{{nil, Authored}, {[]Origin{Authored, AgentProduced}, AgentProduced}, {[]Origin{Observed, Imported}, Observed},
		{[]Origin{"new"}, Observed}} {
		if got := JoinOrigins(row.all...); got != row.want {
			t.Errorf("%v: %s", row.all, got)
		}
	}
}

// TestLinksOfALongLine has a line with many begins of links, which takes time in proportion to its length.
func TestLinksOfALongLine(t *testing.T) {
	for _, part := range []string{"[", "[[", "`", "a]]"} {
		began := time.Now()
		Links(strings.Repeat(part, 1<<20/len(part)))
		if took := time.Since(began); took > 3*time.Second { // milliseconds; quadratic, it takes many seconds
			t.Errorf("%q: %v", part, took)
		}
	}
}

func TestTitleOf(t *testing.T) {
	for text, want := range map[string]string{"# One\n": "One", "text\n## Two\n": "Two", "#tag\n": "file", "```\n# code\n```\n# Real": "Real",
		"---\na: 1\n---\n": "file"} {
		if got := TitleOf(text, `dir/file.md`); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
