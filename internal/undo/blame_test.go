package undo

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drawbridge-mcp/drawbridge/deck"
)

// call has a call write a file.
func (d *desk) call(id, name, content string) {
	d.t.Helper()
	done, err := d.log.Before(Change{Run: "r", Tool: "write", Path: d.path(name), Call: id, Thread: "t", RunName: "run-" + id})
	if err != nil {
		d.t.Fatal(err)
	}
	d.write(name, content)
	if err := done([]byte(content)); err != nil {
		d.t.Fatal(err)
	}
}

// blame returns the ranges of a file in short: "2-3 call", "?" for lines of which nothing is known, and "after call" for
// lines that something else wrote after a call.
func (d *desk) blame(name string) (all []string) {
	d.t.Helper()
	b, err := d.log.Blame(d.path(name))
	if err != nil {
		d.t.Fatal(err)
	}
	if b.ChangedAfter != nil {
		return []string{"changed after " + b.ChangedAfter.Call}
	}
	for _, r := range b.Ranges {
		who := "?"
		switch {
		case r.By != nil:
			who = r.By.Call
		case r.After != nil:
			who = "after " + r.After.Call
		}
		all = append(all, fmt.Sprintf("%d-%d %s", r.First, r.Last, who))
	}
	return all
}

func TestBlame(t *testing.T) {
	d := newDesk(t, 0)
	want := func(name string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, d.blame(name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := d.log.Blame(d.path("a")); !errors.Is(err, ErrNoChanges) {
		t.Errorf("a file without changes: %v", err)
	}
	d.call("A", "a", "one\ntwo\nthree\n")
	want("a", "1-3 A")
	d.call("B", "a", "zero\none\ntwo\nthree\n") // the lines of A move
	want("a", "1-1 B", "2-4 A")
	d.call("C", "a", "zero\none\nTWO\nthree\nfour")
	want("a", "1-1 B", "2-2 A", "3-3 C", "4-4 A", "5-5 C")
	d.call("D", "a", "zero\nthree\nfour\n")
	want("a", "1-1 B", "2-2 A", "3-3 C")

	d.write("a", "zero\nthree\nfour\nby hand\n")
	want("a", "changed after D")
	d.call("E", "a", "zero\nthree\nfour\nby hand\nfive\n")
	want("a", "1-4 after D", "5-5 E")
	d.write("a", "zero\nthree\nfour\n") // as D left it
	want("a", "1-1 B", "2-2 A", "3-3 C")

	d.write("b", "old\n")
	d.call("F", "b", "old\nnew\n")
	want("b", "1-1 ?", "2-2 F")
	d.call("G", "b", "")
	want("b")
	d.call("H", "b", "x\n")
	want("b", "1-1 H")
	if err := os.Remove(d.path("b")); err != nil {
		t.Fatal(err)
	}
	want("b")
	if b, err := d.log.Blame(d.path("b")); err != nil || b.Digest != "" || b.Last.Call != "H" {
		t.Errorf("a deleted file: %+v, %v", b, err)
	}
}

// TestBlameAfterAnUndo: the lines that an undo restores have the owners that they had.
func TestBlameAfterAnUndo(t *testing.T) {
	d := newDesk(t, 0)
	d.call("A", "a", "one\ntwo\n")
	d.change("second", "a", "one\n2\n")
	r, err := d.log.Find(ID("second"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.log.Undo(r, Change{Run: "undo", Tool: "undo"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1-2 A"}, d.blame("a")); diff != "" {
		t.Error(diff)
	}
}

// TestBlameOfAnEarlierRelease: its changes have no hunks, so that nothing is known of the lines.
func TestBlameOfAnEarlierRelease(t *testing.T) {
	d := newDesk(t, 0)
	d.write("a", "one\n")
	if err := d.log.append(entry{Change: "c1", Tool: "write", Path: d.path("a"), Before: absent, After: hashOf([]byte("one\n")),
		Lines: [2]int{1, 1}}, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1-1 ?"}, d.blame("a")); diff != "" {
		t.Error(diff)
	}
	d.call("B", "a", "one\ntwo\n")
	if diff := cmp.Diff([]string{"1-1 ?", "2-2 B"}, d.blame("a")); diff != "" {
		t.Error(diff)
	}
}

// TestLinesBelongToTheirWriters changes a file at random, also by hand, and checks that no line is assigned to a call
// that did not write it. Each line names its writer.
func TestLinesBelongToTheirWriters(t *testing.T) {
	for seed := range uint64(16) {
		d := newDesk(t, 0)
		r := rand.New(rand.NewPCG(seed, 7))
		var lines []string
		past := [][]string{nil}
		for step := range 40 {
			writer, hand := fmt.Sprint("call", step), seed%4 != 0 && r.IntN(4) == 0
			if hand {
				writer = "hand"
			}
			next := slices.Clone(lines)
			if hand && r.IntN(3) == 0 {
				next = slices.Clone(past[r.IntN(len(past))]) // such as a checkout of an earlier commit
			} else {
				for n := range 1 + r.IntN(3) {
					at := r.IntN(len(next) + 1)
					end := min(len(next), at+r.IntN(3))
					var fresh []string
					for m := range r.IntN(4) {
						fresh = append(fresh, fmt.Sprintf("%s %d.%d.%d", writer, step, n, m))
					}
					next = slices.Replace(next, at, end, fresh...)
				}
			}
			content := strings.Join(next, "\n")
			if content != "" && r.IntN(5) > 0 {
				content += "\n"
			}
			switch {
			case hand:
				d.write("f", content)
			case r.IntN(10) == 0 && seed%4 != 0: // it is interrupted
				if _, err := d.log.Before(Change{Run: "r", Tool: "write", Path: d.path("f"), Call: writer}); err != nil {
					t.Fatal(err)
				}
				d.write("f", content)
			default:
				d.call(writer, "f", content)
			}
			lines = next
			past = append(past, slices.Clone(next))
			d.checkWriters(seed, step, lines)
		}
	}
}

// checkWriters checks the owners of the lines of the file f.
func (d *desk) checkWriters(seed uint64, step int, lines []string) {
	d.t.Helper()
	b, err := d.log.Blame(d.path("f"))
	if errors.Is(err, ErrNoChanges) {
		return
	}
	if err != nil {
		d.t.Fatal(err)
	}
	at, known := 1, 0
	for _, r := range b.Ranges {
		if r.First != at || r.Last < r.First || r.Last > len(lines) {
			d.t.Fatalf("seed %d, step %d: %d lines have the range %d-%d", seed, step, len(lines), r.First, r.Last)
		}
		for _, line := range lines[r.First-1 : r.Last] {
			if r.By != nil && !strings.HasPrefix(line, r.By.Call+" ") {
				d.t.Fatalf("seed %d, step %d: the line %q is assigned to %s", seed, step, line, r.By.Call)
			}
		}
		if r.By != nil {
			known += r.Last - r.First + 1
		}
		at = r.Last + 1
	}
	if b.ChangedAfter == nil && at != len(lines)+1 {
		d.t.Fatalf("seed %d, step %d: the ranges end before line %d of %d", seed, step, at, len(lines))
	}
	if seed%4 == 0 && known != len(lines) { // only calls wrote
		d.t.Fatalf("seed %d, step %d: %d of %d lines are known", seed, step, known, len(lines))
	}
}

// TestLargeContents have one hunk.
func TestLargeContents(t *testing.T) {
	before := strings.Repeat("line\n", maxDiffed/5+1)
	hunks, lines := changedHunks([]byte(before), []byte("first\n"+before+"last"))
	if want := []hunk{{1, maxDiffed/5 + 1, maxDiffed/5 + 3}}; !cmp.Equal(hunks, want, cmp.AllowUnexported(hunk{})) || lines != maxDiffed/5+3 {
		t.Errorf("%v, %d lines", hunks, lines)
	}
	if hunks, _ := changedHunks([]byte("a\nb\n"), []byte("a\nb\n")); hunks != nil {
		t.Errorf("the same content has %v", hunks)
	}
}

// TestSourcesOfARun are stored once, survive another process, and have no contents of the lines.
func TestSourcesOfARun(t *testing.T) {
	d := newDesk(t, 0)
	source := deck.Source{Kind: "page", Name: "https://example.com/a", Digest: deck.Digest{1}, Call: "01JDZ0000000000000000000AB"}
	done, err := d.log.Before(Change{Run: "r", Tool: "write", Path: d.path("a"), Call: "A", Thread: "t", RunName: "run",
		Sources: []deck.Source{source, {Kind: "result", Name: "x__y", Server: "x"}}})
	if err != nil {
		t.Fatal(err)
	}
	d.write("a", "password=hunter2-secret\n")
	if err := done([]byte("password=hunter2-secret\n")); err != nil {
		t.Fatal(err)
	}
	again := Open(d.log.dir, 0)
	got, err := again.Sources("t", "run", time.Now())
	if err != nil || len(got) != 2 || got[0] != source {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := again.Sources("t", "run", time.Now().Add(-time.Hour)); err != nil || len(got) != 0 {
		t.Errorf("an hour ago: %+v, %v", got, err)
	}
	for _, name := range []string{logName, readsName} {
		text, err := os.ReadFile(filepath.Join(d.log.dir, name))
		if err != nil || strings.Contains(string(text), "hunter2") {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
	changes, err := again.CallChanges("A")
	if err != nil || len(changes) != 1 || changes[0].Path != d.path("a") || changes[0].Run != "run" {
		t.Errorf("%+v, %v", changes, err)
	}
}
