package undo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A desk is a directory with files, and a log beside it.
type desk struct {
	t   *testing.T
	dir string
	log *Log
}

func newDesk(t *testing.T, maxBytes int64) *desk {
	return &desk{t, t.TempDir(), Open(filepath.Join(t.TempDir(), "undo"), maxBytes)}
}

func (d *desk) path(name string) string { return filepath.Join(d.dir, name) }

// change has a run write a file, as a tool does.
func (d *desk) change(run, name, content string) {
	d.t.Helper()
	done, err := d.log.Before(Change{Run: run, Tool: "write", Path: d.path(name), Caller: "ada"})
	if err != nil {
		d.t.Fatal(err)
	}
	d.write(name, content)
	if err := done([]byte(content)); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) write(name, content string) {
	d.t.Helper()
	if err := errors.Join(os.WriteFile(d.path(name), []byte(content), 0o640), os.Chmod(d.path(name), 0o640)); err != nil {
		d.t.Fatal(err) // the mode of a new file depends on the umask
	}
}

// files returns the content of each file.
func (d *desk) files() map[string]string {
	d.t.Helper()
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		d.t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(d.path(e.Name()))
		if err != nil {
			d.t.Fatal(err)
		}
		all[e.Name()] = string(text)
	}
	return all
}

// undo takes a run back and returns what was done with each file.
func (d *desk) undo(id string) (out []string) {
	d.t.Helper()
	r, err := d.log.Find(id)
	if err != nil {
		d.t.Fatal(err)
	}
	steps, err := d.log.Undo(r, Change{Run: "undo of " + r.ID, Tool: "undo"})
	if err != nil {
		d.t.Fatal(err)
	}
	for _, s := range steps {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", filepath.Base(s.Path), s.Action, s.Reason)))
	}
	return out
}

func wantSame[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestUndo(t *testing.T) {
	d := newDesk(t, 0)
	d.write("old", "one\ntwo\n")
	d.write("later", "x")
	d.write("gone", "x")
	d.change("r", "old", "one\n2\n")
	d.change("r", "old", "one\n2\nthree\n")
	d.change("r", "new", "fresh")
	d.change("r", "later", "y")
	d.change("r", "gone", "y")
	d.change("r", "same", "")
	d.write("later", "a person's own")
	if err := os.Remove(d.path("gone")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(d.path("same")); err != nil {
		t.Fatal(err)
	}
	want := []string{"old restore", "new delete", "later refuse it was changed since", "gone refuse it was deleted since",
		"same unchanged it is as it was before the run"}
	wantSame(t, "steps", want, d.undo(""))
	wantSame(t, "files", map[string]string{"old": "one\ntwo\n", "later": "a person's own"}, d.files())
	if info, err := os.Stat(d.path("old")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	// An undo is a change, and can be taken back.
	wantSame(t, "steps of the undo of the undo", []string{"old restore", "new restore"}, d.undo(""))
	wantSame(t, "files", map[string]string{"old": "one\n2\nthree\n", "new": "fresh", "later": "a person's own"}, d.files())
}

func TestRuns(t *testing.T) {
	d := newDesk(t, 0)
	if _, err := d.log.Find(""); !errors.Is(err, ErrUnknownRun) {
		t.Errorf("without changes: %v", err)
	}
	d.change("a", "x", "1\n2\n3\n")
	d.change("b", "y", "1")
	d.change("a", "x", "1\nzwei\n3\n")
	runs, err := d.log.Runs()
	if err != nil || len(runs) != 2 || runs[0].ID != ID("a") || runs[1].ID != ID("b") {
		t.Fatalf("%+v, %v", runs, err)
	}
	if f := runs[0].Files; len(f) != 1 || f[0].Path != d.path("x") || f[0].Lines != [2]int{2, 2} || runs[0].Caller != "ada" {
		t.Errorf("%+v", runs[0])
	}
	if r, err := d.log.Find(ID("b")[:5]); err != nil || r.ID != ID("b") {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := d.log.Find("zz"); !errors.Is(err, ErrUnknownRun) {
		t.Errorf("an unknown run: %v", err)
	}
}

// TestACrashInTheMiddle: the program ended after it kept the content, before or after it wrote the file.
func TestACrashInTheMiddle(t *testing.T) {
	for _, written := range []bool{false, true} {
		d := newDesk(t, 0)
		d.write("f", "before")
		if _, err := d.log.Before(Change{Run: "r", Path: d.path("f")}); err != nil {
			t.Fatal(err)
		}
		want := "f unchanged it is as it was before the run"
		if written {
			d.write("f", "after")
			want = "f refuse it is not known what the run wrote: it was interrupted"
		}
		log := filepath.Join(d.log.dir, logName)
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(log, append(text, `{"time":"2026-0`...), 0o600); err != nil { // a line that was cut off
			t.Fatal(err)
		}
		wantSame(t, "steps", []string{want}, d.undo(""))
	}
}

func TestDamage(t *testing.T) {
	d := newDesk(t, 0)
	d.write("f", "before")
	d.change("r", "f", "after")
	if err := os.WriteFile(d.log.contentPath(hashOf([]byte("before"))), []byte("BEFORE"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantSame(t, "steps", []string{"f refuse its earlier content is not kept any more"}, d.undo(""))
	if err := os.Mkdir(d.path("dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := d.log.Before(Change{Run: "r", Path: d.path("dir")}); err == nil {
		t.Error("a directory was kept")
	}
}

// TestBound keeps the newest contents.
func TestBound(t *testing.T) {
	d := newDesk(t, 10_000)
	for i := range 50 {
		d.change(fmt.Sprint(i), "f", strings.Repeat(fmt.Sprint(i%10), 1000)+fmt.Sprint(i))
	}
	var total int64
	err := filepath.Walk(filepath.Join(d.log.dir, contentsName), func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			total += info.Size()
		}
		return err
	})
	if err != nil || total > 11_100 || total < 5000 {
		t.Errorf("%d bytes are kept, %v", total, err)
	}
	wantSame(t, "steps", []string{"f restore"}, d.undo(""))
	runs, err := d.log.Runs()
	if err != nil || len(runs) > 15 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
}

// TestSeveralWriters: several processes use one log.
func TestSeveralWriters(t *testing.T) {
	d := newDesk(t, 0)
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			other := &desk{t, d.dir, Open(d.log.dir, 0)}
			for range 20 {
				other.change(fmt.Sprint(i), fmt.Sprint("f", i), fmt.Sprint("content ", i))
			}
		})
	}
	work.Wait()
	all, err := d.log.entries()
	if err != nil || len(all) != 160 {
		t.Errorf("%d changes, %v", len(all), err)
	}
}

// TestErase removes the kept contents with a text, so that these changes cannot be undone; the others can.
func TestErase(t *testing.T) {
	dir := t.TempDir()
	l := Open(filepath.Join(dir, "log"), 0)
	if err := l.Erase([]string{"secret"}); err != nil {
		t.Fatalf("an empty log: %v", err)
	}
	for _, text := range []string{"a secret", "nothing"} {
		path := filepath.Join(dir, text)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		done, err := l.Before(Change{Run: text, Tool: "write", Path: path})
		if err == nil {
			err = os.WriteFile(path, []byte("new"), 0o600)
		}
		if err == nil {
			err = done([]byte("new"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Erase([]string{"secret", "other"}); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]Action{"a secret": Refuse, "nothing": Restore} {
		run, err := l.Find(ID(text))
		if err != nil {
			t.Fatal(err)
		}
		if steps := l.Plan(run); len(steps) != 1 || steps[0].Action != want {
			t.Errorf("%s: %+v", text, steps)
		}
	}
}
