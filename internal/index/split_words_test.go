package index_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge/internal/index"
	"github.com/google/go-cmp/cmp"
)

func TestSplit(t *testing.T) {
	for _, tt := range []struct {
		text string
		want string // the words, with a stroke between them
	}{
		{"", ""},
		{"List all pull requests.", "list|all|pull|requests"},
		{"list_pull_requests", "list|pull|requests"},
		{"listPullRequests", "list|pull|requests"},
		{"getHTTPStatus", "get|http|status"},
		{"HTTPServer", "http|server"},
		{"listURLs", "list|urls"},
		{"XMLHttpRequest", "xml|http|request"},
		{"get-2fa-code2", "get|2|fa|code|2"},
		{"ID", "id"},
		{"A", "a"},
		{"iPhone", "i|phone"},
		{"Ada's file, they're open", "ada|file|they|open"},
		{"rock'n'roll", "rock|roll"},
		{"Ｆｕｌｌ　ｗｉｄｔｈ　４２", "full|width|42"},
		{"搜索关键词", "搜索|索关|关键|键词"},
		{"用bing搜", "用|bing|搜"},
		{"ひらがな", "ひら|らが|がな"},
		{"Überprüfe die Straße", "überprüfe|die|straße"},
		{"ПолучитьСписок", "получить|список"},
		{"café", "café"}, // the accent is a character of its own
		{"\xff\xfea", "a"},
	} {
		var want []string
		if tt.want != "" {
			want = strings.Split(tt.want, "|")
		}
		if got := index.SplitWords(tt.text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", tt.text, got, want)
		}
	}
}

func TestStem(t *testing.T) {
	for word, want := range map[string]string{
		"listing": "list", "lists": "list", "queries": "queri", "query": "queri", "": "", "a": "a", "42": "42",
		"größen": "größen", "搜索": "搜索",
	} {
		if got := index.StemWord(word); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

func TestKeep(t *testing.T) {
	stops := index.NewStopWords()
	for _, tt := range []struct {
		text string
		want string
	}{
		{"can you please find me the largest file in this directory", "find largest file directory"},
		{"get the user", "get the user"}, // too little would be left
		{"list my open pull requests", "list open pull requests"},
		{"copy my MySQL tables to the disk", "copy my sql tables disk"},
		{"what does it do in JavaScript", "what does it do in java script"},
	} {
		got := strings.Join(stops.Parse(tt.text, 3).ContentWords(index.WholeRequest, 3), " ")
		if got != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestParts(t *testing.T) {
	stops := index.NewStopWords()
	for _, tt := range []struct {
		text string
		want []string // the words of each part
	}{
		{"", nil},
		{"...", nil},
		{"list open pull requests", []string{"list open pull requests"}},
		{
			"Find a recipe for vegan lasagne and send it by email to Ada Lovelace. Then book a table for Friday evening!",
			[]string{"find a recipe for vegan lasagne", "send it by email to ada lovelace",
				"book a table for friday evening"},
		},
		{"search for cats and dogs", []string{"search for cats dogs"}}, // "dogs" asks for nothing of its own
		{"read version 1.2.3 of the file", []string{"read version 1 2 3 of the file"}},
		{"convert the currency AND THEN show the weather report", []string{"convert the currency",
			"show the weather report"}},
		{"查询北京的天气，发送邮件给同事", []string{"查询 询北 北京 京的 的天 天气", "发送 送邮 邮件 件给 给同 同事"}},
	} {
		r := stops.Parse(tt.text, 3)
		var got []string
		for part := range r.Parts {
			got = append(got, strings.Join(r.ContentWords(part, len(tt.text)), " "))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q: %s", tt.text, diff)
		}
	}
}

// FuzzSplit has every word be of letters or of digits and in lower case, and the same when it is read again.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{"getHTTPStatus", "搜索a", "Ada's", "\xff", "ＡＢ", "ǅ", "1２", "a\u0301B"} {
		f.Add(s)
	}
	stops := index.NewStopWords()
	f.Fuzz(func(t *testing.T, text string) {
		for _, word := range index.SplitWords(text) {
			if word == "" || !utf8.ValidString(word) {
				t.Fatalf("%q has the word %q", text, word)
			}
			first, _ := utf8.DecodeRuneInString(word)
			if !unicode.IsLetter(first) && !unicode.IsDigit(first) {
				t.Fatalf("%q has the word %q", text, word)
			}
			index.StemWord(word)
		}
		r := stops.Parse(text, 3)
		var all []string
		for _, w := range r.Words {
			if w.Part < index.BetweenParts || w.Part >= r.Parts {
				t.Fatalf("%q has %d parts, and a word in %d", text, r.Parts, w.Part)
			}
			all = append(all, w.Text)
		}
		if split := index.SplitWords(text); !slices.Equal(all, split) {
			t.Fatalf("%q: a request has %q, a text %q", text, all, split)
		}
	})
}
