package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rivo/uniseg"

	"github.com/drawbridge-mcp/drawbridge/internal/audit"
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

// TestFitTimes: a time loses its date first, and IDs of revisions stay whole.
func TestFitTimes(t *testing.T) {
	const rows = "REVISION\tWHEN\tTITLE\nbk_01M8JEFKV03WH011754EDNW6RY\t2026-11-29 01:25:01\tA long title of a page\n"
	for width, want := range map[int]string{
		80: rows,
		61: "REVISION\tWHEN\tTITLE\nbk_01M8JEFKV03WH011754EDNW6RY\t11-29 01:25:01\tA long title…\n",
		50: "REVISION\tWHEN\tTITLE\nbk_01M8JEFKV03WH011754EDNW6RY\t01:25:01\tA long t…\n",
	} {
		if got := fitRows(rows, width); got != want {
			t.Errorf("width %d:\n%q\nwant\n%q", width, got, want)
		}
	}
}

func TestAuditRowsFitTheTerminal(t *testing.T) {
	records := []audit.Record{
		{ID: "01M8JEFKVK3442T95T3YTHXHRD", Kind: audit.Call, Method: "tools/call", Card: "fs__write_file",
			Outcome: audit.Refused, Reason: "the tool may change something", By: "root, drawbridge ask deny"},
		{ID: "01M8JEFKVK3442T95T3YTHXHRE", Kind: audit.AdminAction, Method: "ask deny", Server: "fs",
			Card: "fs__write_file", Outcome: audit.OK}}
	for i := range records {
		records[i].Caller.Principal, records[i].At = "root", time.Date(2026, 11, 29, 1, 25, 1, 0, time.Local)
	}
	for width, want := range map[int]string{
		0: "AT\tCALLER\tMETHOD\tTOOL\tOUTCOME\tTOOK\tID\n" +
			"2026-11-29 01:25:01\troot\ttools/call\tfs__write_file\t" +
			"refused by root: the tool may change something\t-\t01M8JEFKVK3442T95T3YTHXHRD\n" +
			"2026-11-29 01:25:01\troot\task deny\tfs__write_file\tok\t-\t01M8JEFKVK3442T95T3YTHXHRE\n",
		80: "AT\tCALLER\tTOOL\tOUTCOME\tID\n" +
			"01:25:01\troot\tfs__write_fi…\trefused by ro…\t01M8JEFKVK3442T95T3YTHXHRD\n" +
			"01:25:01\troot\task deny fs_…\tok\t01M8JEFKVK3442T95T3YTHXHRE\n",
	} {
		got := auditRows(records, width)
		if width > 0 {
			got = fitRows(got, width)
		}
		if got != want {
			t.Errorf("width %d:\n%s\nwant\n%s", width, got, want)
		}
	}
}
