package index

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSentence(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		"Reads a file":                       "Reads a file",
		"Reads a file. It must be there.":    "Reads a file.",
		"Reads a file\nthat must be there.":  "Reads a file\n",
		"Reads files, e.g. logs. All of it.": "Reads files, e.g. logs.",
		"Version 1.2 of what reads files":    "Version 1.2 of what reads files",
		"Tool: x.\nReads a file! Always.":    "Tool: x.\nReads a file!",
		"返回搜索结果列表。包括标题":                      "返回搜索结果列表。",
		"ends amidst a character \xff":       "ends amidst a character \xff",
		"broken \xff\xff\xff text. Then":     "broken \xff\xff\xff text.",
	} {
		if got := text[:firstSentenceLen(text)]; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestTexts reads a tool: what is odd in its schema is left out, and nothing else.
func TestTexts(t *testing.T) {
	d := Document{Server: "srv", Name: "find_it", Title: "Finder", Description: "Finds it at once. Nothing is lost.", Schema: json.RawMessage(`{
		"description": "of the whole", "properties": {
			"where": {"description": "A place", "enum": ["here", 7, "there"]},
			"odd": {"description": 7, "enum": "x", "properties": [], "items": {"description": "An odd one"}},
			"not": true,
			"deep": {"items": {"properties": {"deeper": {"description": "Far down"}}}}
		}, "items": [1]}`)}
	want := [fields]string{
		"find_it", "srv", "Finder\nFinds it at once.", " Nothing is lost.",
		"deep\ndeeper\nnot\nodd\nwhere\n", "Far down\nAn odd one\nA place\nhere\nthere\n",
	}
	if diff := cmp.Diff(want, d.fieldTexts()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("srv\nfind_it\nFinder\nFinds it at once. Nothing is lost.\ndeep deeper not odd where",
		d.EmbeddingText()); diff != "" {
		t.Error(diff)
	}
	d.Schema = json.RawMessage(`{"properties": {"a": {}`)
	if got := d.fieldTexts()[fieldParameters]; got != "" {
		t.Errorf("broken: %q", got)
	}
}
