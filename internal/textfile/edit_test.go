package textfile

import (
	"strings"
	"testing"
)

const code = "func a() {\n\tif x {\n\t\treturn 1\n\t}\n\treturn 2\n}\n"

// An applyCase is an edit, with the new content or a part of the error.
type applyCase struct {
	content   string
	edits     []Edit
	want      string // the new content, or
	wantError string // a part of the error
	count     int
	tolerance Tolerance
}

// applyCases are the shapes in which models ask for edits.
var applyCases = map[string]applyCase{
	"a word":          {content: "one two", edits: []Edit{{Old: "two", New: "2"}}, want: "one 2"},
	"a word, deleted": {content: "one two", edits: []Edit{{Old: " two"}}, want: "one"},
	"a line in the middle": {content: code, edits: []Edit{{Old: "\t\treturn 1\n", New: "\t\treturn 3\n"}},
		want: strings.Replace(code, "return 1", "return 3", 1)},
	"lines deleted":                     {content: "a\nb\nc\n", edits: []Edit{{Old: "b\n"}}, want: "a\nc\n"},
	"every occurrence":                  {content: "x x x", edits: []Edit{{Old: "x", New: "yy", All: true}}, want: "yy yy yy", count: 3},
	"every occurrence, overlapping":     {content: "aaaa", edits: []Edit{{Old: "aa", New: "b", All: true}}, want: "bb", count: 2},
	"the new text contains the old one": {content: "x", edits: []Edit{{Old: "x", New: "xx"}}, want: "xx"},
	"all of the file":                   {content: "a\n", edits: []Edit{{Old: "a\n", New: "b\n"}}, want: "b\n"},
	"characters of several bytes":       {content: "größe: 1", edits: []Edit{{Old: "größe", New: "länge"}}, want: "länge: 1"},
	"bytes that are no text":            {content: "a\xff\xfeb", edits: []Edit{{Old: "b", New: "c"}}, want: "a\xff\xfec"},
	"several edits":                     {content: "a b c", edits: []Edit{{Old: "a", New: "1"}, {Old: "c", New: "3"}}, want: "1 b 3", count: 2},
	"an edit of what an edit wrote": {content: "a", edits: []Edit{{Old: "a", New: "b"}, {Old: "b", New: "c"}}, want: "c",
		count: 2},

	"CRLF: one line": {content: "a\r\nb\r\nc\r\n", edits: []Edit{{Old: "b", New: "B"}}, want: "a\r\nB\r\nc\r\n"},
	"CRLF: the edit has LF": {content: "a\r\nb\r\nc\r\n", edits: []Edit{{Old: "a\nb\n", New: "a\nx\nb\n"}},
		want: "a\r\nx\r\nb\r\nc\r\n", tolerance: LineEndings},
	"CRLF: a part of two lines": {content: "int a;\r\nint b;\r\n", edits: []Edit{{Old: "a;\nint b", New: "c;\nint d"}},
		want: "int c;\r\nint d;\r\n", tolerance: LineEndings},
	"LF: the edit has CRLF": {content: "a\nb\n", edits: []Edit{{Old: "a\r\nb\r\n", New: "a\r\nx\r\n"}}, want: "a\nx\n",
		tolerance: TrailingSpace},
	"mixed line endings stay": {content: "a\r\nb\nc\r\n", edits: []Edit{{Old: "c", New: "d"}}, want: "a\r\nb\nd\r\n"},
	"mixed line endings in the text": {content: "a\r\nb\nc\r\n", edits: []Edit{{Old: "a\nb\n", New: "a\nB\n"}},
		want: "a\r\nB\r\nc\r\n", tolerance: TrailingSpace},
	"a byte order mark stays":   {content: "\ufeffa\nb\n", edits: []Edit{{Old: "b", New: "c"}}, want: "\ufeffa\nc\n"},
	"no line ending at the end": {content: "a\nb", edits: []Edit{{Old: "b", New: "c"}}, want: "a\nc"},
	"no line ending at the end, but in the edit": {content: "a\nb", edits: []Edit{{Old: "b\n", New: "c\n"}}, want: "a\nc",
		tolerance: TrailingSpace},

	"white space at the end, in the file": {content: "a  \nb\t\nc\n", edits: []Edit{{Old: "a\nb\n", New: "A\nB\n"}},
		want: "A\nB\nc\n", tolerance: TrailingSpace},
	"white space at the end, in the edit": {content: "a\nb\nc\n", edits: []Edit{{Old: "a \nb  ", New: "A\nB"}},
		want: "A\nB\nc\n", tolerance: TrailingSpace},
	"a blank line with spaces": {content: "a\n   \nb\n", edits: []Edit{{Old: "a\n\nb", New: "a\nb"}}, want: "a\nb\n",
		tolerance: TrailingSpace},

	"less indentation in the edit": {content: code, edits: []Edit{{Old: "if x {\n\treturn 1\n}", New: "if y {\n\treturn 1\n}"}},
		want: strings.Replace(code, "if x", "if y", 1), tolerance: Indentation},
	"more indentation in the edit": {content: "a:\n  b\n  c\n", edits: []Edit{{Old: "      b\n      c\n", New: "      b\n      d\n"}},
		want: "a:\n  b\n  d\n", tolerance: Indentation},
	"spaces for tabs": {content: code, edits: []Edit{{Old: "    if x {\n        return 1\n    }",
		New: "    if x {\n        return 7\n    }"}}, want: strings.Replace(code, "return 1", "return 7", 1),
		tolerance: Indentation},
	"tabs for spaces": {content: "if x:\n  if y:\n    return\n", edits: []Edit{{Old: "\tif y:\n\t\treturn\n",
		New: "\tif y:\n\t\tpass\n\t\treturn\n"}}, want: "if x:\n  if y:\n    pass\n    return\n", tolerance: Indentation},
	"indentation, and new blank lines": {content: "\ta\n\tb\n", edits: []Edit{{Old: "a\nb", New: "a\n\nb"}},
		want: "\ta\n\n\tb\n", tolerance: Indentation},
	"indentation with CRLF": {content: "\ta\r\n\tb\r\n", edits: []Edit{{Old: "a\nb\n", New: "a\nc\n"}},
		want: "\ta\r\n\tc\r\n", tolerance: Indentation},
	"other lines keep their tabs": {content: "\tx\n    a\n\ty\n", edits: []Edit{{Old: "a", New: "b"}},
		want: "\tx\n    b\n\ty\n"},
	"indentation that does not fit": {content: "a\n    b\n  c\n", edits: []Edit{{Old: "a\n  b\n    c\n", New: "x"}},
		wantError: "oldText was not found."},

	"empty":    {content: "a", edits: []Edit{{New: "b"}}, wantError: "oldText is empty"},
	"the same": {content: "a", edits: []Edit{{Old: "a", New: "a"}}, wantError: "oldText and newText are the same."},
	"no edit":  {content: "a", wantError: "There is no edit to make."},
	"nothing changes": {content: "a b", edits: []Edit{{Old: "a", New: "c"}, {Old: "c", New: "a"}},
		wantError: "The file would stay as it is."},
	"twice": {content: "x\ny\nx\n", edits: []Edit{{Old: "x", New: "z"}},
		wantError: "oldText occurs 2 times, in lines 1, 3. Give more of the lines around it, or set replaceAll."},
	"twice, with a tolerance": {content: "\tx()\n\n\t\tx()\n", edits: []Edit{{Old: "x() ", New: "y()"}},
		wantError: "oldText occurs 2 times, in lines 1, 3."},
	"an exact one beside a tolerated one": {content: "a \na\n", edits: []Edit{{Old: "a\n", New: "b\n"}}, want: "a \nb\n"},
	"an empty file":                       {edits: []Edit{{Old: "a", New: "b"}}, wantError: "the file is empty"},
	"nothing like it": {content: "alpha\nbeta\n", edits: []Edit{{Old: "zzzz", New: "b"}},
		wantError: "oldText was not found. No line of the file resembles it."},
	"a near miss": {content: code, edits: []Edit{{Old: "\tif x {\n\t\treturn 9\n\t}\n", New: "\n"}},
		wantError: "oldText was not found. The most similar lines are:\n     2\t\tif x {\n     3\t\t\treturn 1\n     4\t\t}"},
	"a near miss of one line": {content: "alpha()\nbetaFunction(x, y)\n", edits: []Edit{{Old: "betaFunction(x)", New: "b"}},
		wantError: "The most similar lines are:\n     2\tbetaFunction(x, y)"},
	"made before": {content: "new line\n", edits: []Edit{{Old: "old text", New: "new line"}},
		wantError: "newText is in line 1: the edit may have been made before."},
	"blank lines only": {content: "a\n\n\nb\n", edits: []Edit{{Old: " \n \n", New: "x"}}, wantError: "was not found"},
	"the second of two": {content: "a b", edits: []Edit{{Old: "a", New: "1"}, {Old: "zz", New: "2"}},
		wantError: "Edit 2: oldText was not found."},
}

func TestApply(t *testing.T) {
	for name, tt := range applyCases {
		t.Run(name, func(t *testing.T) {
			got, err := Apply(tt.content, tt.edits)
			if tt.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantError) {
					t.Errorf("the error is %v, want %q; the content is %q", err, tt.wantError, got.Content)
				}
				return
			}
			count := max(tt.count, 1)
			if err != nil || got.Content != tt.want || got.Replacements != count || got.Tolerance != tt.tolerance {
				t.Errorf("got %q, %d, %d, %v; want %q, %d, %d", got.Content, got.Replacements, got.Tolerance, err, tt.want,
					count, tt.tolerance)
			}
		})
	}
}

func TestDiff(t *testing.T) {
	want := "--- f\n+++ f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
	if got := Diff("f", "a\nb\nc\n", "a\nB\nc\n"); got != want {
		t.Errorf("got\n%s", got)
	}
	long := Diff("f", strings.Repeat("a line of the old file\n", 5000), strings.Repeat("a line of the new file\n", 5000))
	if len(long) > maxDiff+100 || !strings.Contains(long, "\n[") || !strings.Contains(long, " bytes elided]\n+a line") ||
		!strings.HasPrefix(long, "--- f\n") {
		t.Errorf("%d bytes: %.200s", len(long), long)
	}
}

// FuzzApply holds what every edit must keep: the bytes before and behind the changed span.
func FuzzApply(f *testing.F) {
	f.Add("a\r\n\tb\r\n", "b", "c", false)
	f.Add("a\n  b\n", "\tb\n", "c\n", true)
	f.Fuzz(func(t *testing.T, content, old, text string, all bool) {
		got, err := Apply(content, []Edit{{Old: old, New: text, All: all}})
		if err != nil {
			if got.Content != "" {
				t.Error("an edit that failed has a content")
			}
			return
		}
		if got.Replacements == 0 || got.Content == content || !all && got.Replacements != 1 {
			t.Errorf("%+v", got)
		}
		if got.Tolerance == Exact && !all && got.Content != strings.Replace(content, old, text, 1) {
			t.Errorf("%q is not %q", got.Content, strings.Replace(content, old, text, 1))
		}
		if Diff("f", content, got.Content) == "" {
			t.Error("no diff")
		}
	})
}

// TestALargeFileIsSearchedInTime: a miss in a file of many equal lines takes no longer than a person waits.
func TestALargeFileIsSearchedInTime(t *testing.T) {
	content := strings.Repeat("\t}\n", 2_000_000)
	if _, err := Apply(content, []Edit{{Old: strings.Repeat("}\n\tx\n", 50), New: "y"}}); err == nil {
		t.Error("it was found")
	}
}
