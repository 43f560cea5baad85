package index

import "testing"

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
		if got := text[:sentence(text)]; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
