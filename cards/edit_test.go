package cards

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestEdit(t *testing.T) {
	b := newBench(t, nil)
	path := b.file("a.go", "func a() {\r\n\treturn 1\r\n}\r\n")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	b.want("edit", `{"path":"a.go","oldText":"1","newText":"2"}`, string(notReadText))
	b.call("read", `{"path":"a.go"}`)
	b.want("edit", `{"path":"a.go","oldText":"func a() {\n    return 1\n}","newText":"func a() {\n    return 2\n}"}`,
		"Replaced 1 occurrence(s) in a.go. oldText differed from the file in indentation.\n\n"+
			"--- a.go\n+++ a.go\n@@ -1,3 +1,3 @@\n func a() {\r\n-\treturn 1\r\n+\treturn 2\r\n }\r\n")
	if got := b.content("a.go"); got != "func a() {\r\n\treturn 2\r\n}\r\n" {
		t.Errorf("the file is %q", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	// The run has seen what it wrote.
	b.want("edit", `{"path":"a.go","edits":[{"oldText":"a()","newText":"b()"},{"oldText":"nope","newText":"x"}]}`,
		"Edit 2: oldText was not found. No line of the file resembles it. Read the file again.")
	if got := b.content("a.go"); !strings.Contains(got, "a()") {
		t.Errorf("one of two edits was made: %q", got)
	}
	if got := b.call("edit", `{"path":"a.go","edits":[{"oldText":"a()","newText":"b()"},{"oldText":"2","newText":"3"}]}`); !strings.HasPrefix(got, "Replaced 2 occurrence(s) in a.go.\n") {
		t.Error(got)
	}
	for args, want := range map[string]string{
		`{"path":"a.go","oldText":"b","newText":"c","edits":[{"oldText":"a","newText":"b"}]}`: "Give either oldText and newText, or edits.",
		`{"path":"a.go"}`:                                 "oldText is empty. Give the text to replace; the tool write writes a whole file.",
		`{"path":".","oldText":"a","newText":"b"}`:        b.dir + " is a directory.",
		`{"path":"none","oldText":"a","newText":"b"}`:     "Could not edit " + b.dir + "/none: no such file or directory.",
		`{"path":"a\u0000b","oldText":"a","newText":"b"}`: "The path contains a NUL character.",
	} {
		b.want("edit", args, want)
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	b.want("edit", `{"path":"a.go","oldText":"b()","newText":"c()"}`, string(modifiedText))
}
