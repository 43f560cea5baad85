package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rivo/uniseg"
)

func TestFitRows(t *testing.T) {
	const rows = "SERVER\tSTATE\tSUMMARY\tSOURCE\n" +
		"github\tready\tCreates, lists and closes issues of a repository\t~/.config/drawbridge/mcp.json:3\n" +
		"名前名前名前名前\tidle\t説明説明説明説明説明説明説明説明説明\t-\n"
	for _, tt := range []struct {
		width int
		want  string
	}{
		{200, rows},
		{80, "SERVER\tSTATE\tSUMMARY\tSOURCE\n" +
			"github\tready\tCreates, lists and closes…\t…nfig/drawbridge/mcp.json:3\n" +
			"名前名前名前名前\tidle\t説明説明説明説明説明説明…\t-\n"},
		{60, "SERVER\tSTATE\tSUMMARY\tSOURCE\n" +
			"github\tready\tCreates, lists…\t…ridge/mcp.json:3\n" +
			"名前名前名前名前\tidle\t説明説明説明説…\t-\n"},
	} {
		got := fitRows(rows, tt.width)
		if tt.want != got {
			t.Errorf("width %d:\n%s\nwant\n%s", tt.width, got, tt.want)
		}
	}
	for width := 40; width < 140; width++ {
		for line := range strings.Lines(fitRows(rows, width)) {
			if n := uniseg.StringWidth(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "  ")); n > width {
				t.Errorf("a line of %d columns at width %d: %s", n, width, line)
			}
		}
	}
}

// TestTableIsWhole shows that output to a file or a pipe is aligned and never shortened.
func TestTableIsWhole(t *testing.T) {
	var out bytes.Buffer
	table := NewTable(&out)
	_, _ = table.Write([]byte("A\tB\n" + strings.Repeat("x", 300) + "\ty\n"))
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	if want := "A" + strings.Repeat(" ", 301) + "B\n" + strings.Repeat("x", 300) + "  y\n"; out.String() != want {
		t.Errorf("got %q", out.String())
	}
}
