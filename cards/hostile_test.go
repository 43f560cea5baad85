//go:build unix

package cards

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"golang.org/x/sys/unix"
)

// TestHostileFiles calls the tools for files with FIFOs, devices, loops of links and binary files. No call blocks, and each
// answer names the cause.
func TestHostileFiles(t *testing.T) {
	b := newBench(t, nil)
	if err := unix.Mkfifo(filepath.Join(b.dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"loop": "loop", "up": ".", "zero": "/dev/zero", "gone": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(b.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	b.file("binary", "a\x00b")
	b.file("found.txt", "needle\n")
	for args, want := range map[string]string{
		`read {"path":"fifo"}`:                             "is not a regular file",
		`read {"path":"zero"}`:                             "is not a regular file",
		`read {"path":"loop"}`:                             "too many levels of symbolic links",
		`read {"path":"gone"}`:                             "no such file or directory",
		`read {"path":"binary"}`:                           "binary",
		`edit {"path":"fifo","oldText":"a","newText":"b"}`: "is not a regular file",
		`edit {"path":"zero","oldText":"a","newText":"b"}`: "is not a regular file",
		`write {"path":"fifo","content":"x"}`:              "is not a regular file",
		`write {"path":"zero","content":"x"}`:              "is not a regular file",
		`ls {"path":"loop"}`:                               "too many levels of symbolic links",
		`grep {"pattern":"needle"}`:                        "found.txt:1: needle\n",
		`grep {"pattern":"needle","path":"fifo"}`:          "",
		`find {"query":"*"}`:                               "found.txt",
	} {
		card, args, _ := strings.Cut(args, " ")
		if got := b.call(drawbridge.CardName(card), args); !strings.Contains(got, want) {
			t.Errorf("%s %s: %q; want %q", card, args, got, want)
		}
	}
}

// TestHostileNames lists and finds files whose names have line feeds and escape sequences.
func TestHostileNames(t *testing.T) {
	b := newBench(t, nil)
	for _, name := range []string{"a\nb.txt", "\x1b[31mred.txt", "rtl\u202etxt.exe", "spaces   .txt"} {
		b.file(name, "needle\n")
	}
	for _, c := range []struct{ card, args string }{{"ls", `{}`}, {"find", `{"query":"*"}`}, {"grep", `{"pattern":"needle"}`}} {
		got := b.call(drawbridge.CardName(c.card), c.args)
		if strings.ContainsAny(got, "\x1b\u202e") || strings.Contains(got, "a\nb") {
			t.Errorf("%s: %q", c.card, got)
		}
		if strings.Count(got, "txt") < 4 {
			t.Errorf("%s leaves out a name: %q", c.card, got)
		}
	}
}
