package hub

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A watchedFile is a file in a new directory, with a watcher that has seen its state.
type watchedFile struct {
	*testing.T
	w      *inotifyWatcher
	path   string
	states fileStates
}

func watchFile(t *testing.T, path string) *watchedFile {
	t.Helper()
	w, err := newInotifyWatcher()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	f := &watchedFile{T: t, w: w, path: path, states: fileStates{}}
	f.look()
	return f
}

// look does what watchConfig does when a file may have been replaced.
func (f *watchedFile) look() (changed, missing bool) {
	more, missing := f.w.watch([]string{f.path})
	return f.states.update([]string{f.path}) || more, missing
}

// await waits until the watcher notices a change of the file.
func (f *watchedFile) await(what string) {
	f.Helper()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	for {
		select {
		case e := <-f.w.events():
			if e.err != nil {
				f.Fatal(e.err)
			}
			if changed, _ := f.look(); changed || e.written {
				return
			}
		case <-limit.C:
			f.Fatalf("not noticed: %s", what)
		}
	}
}

// settle reads the events of a change up to those of the file's last write, which it makes.
func (f *watchedFile) settle() {
	f.Helper()
	write(f.T, f.path, "settled")
	f.await("the last write")
	for {
		select {
		case <-f.w.events():
			f.look()
		case <-time.After(50 * time.Millisecond):
			return
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func do(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// TestWritesToOtherFilesDoNotWake writes to a file beside the configuration. No read of the watcher returns.
func TestWritesToOtherFilesDoNotWake(t *testing.T) {
	dir := t.TempDir()
	ours, other := filepath.Join(dir, "mcp.json"), filepath.Join(dir, "build.log")
	write(t, ours, "{}")
	write(t, other, "")
	f := watchFile(t, ours)
	log, err := os.OpenFile(other, os.O_APPEND|os.O_WRONLY, 0)
	do(t, err)
	defer log.Close()
	before := f.w.reads.Load()
	for i := range 1000 {
		if _, err := fmt.Fprintln(log, i); err != nil {
			t.Fatal(err)
		}
		if i%100 == 0 {
			write(t, other, "from the beginning")
		}
	}
	// The events of a watcher arrive in order: those of the other file would arrive before those of ours.
	handle, err := os.OpenFile(ours, os.O_APPEND|os.O_WRONLY, 0)
	do(t, err)
	defer handle.Close()
	_, err = handle.WriteString(" ")
	do(t, err)
	f.await("a write to the configuration")
	if n := f.w.reads.Load() - before; n != 1 {
		t.Errorf("the watcher was woken %d times, want once, for the configuration", n)
	}
}

// TestWaysToEdit changes a configuration file in the ways of editors and programs.
func TestWaysToEdit(t *testing.T) {
	inPlace := func(t *testing.T, path string) { write(t, path, `{"in":"place"}`) }
	renamed := func(t *testing.T, path string) {
		write(t, path+".new", `{"by":"rename"}`)
		do(t, os.Rename(path+".new", path))
	}
	for _, tt := range []struct {
		name string
		edit func(t *testing.T, path string)
	}{
		{"in place", inPlace},
		{"replaced by rename", renamed},
		{"with a backup", func(t *testing.T, path string) {
			do(t, os.Rename(path, path+"~"))
			write(t, path, `{"with":"backup"}`)
		}},
		{"removed", func(t *testing.T, path string) { do(t, os.Remove(path)) }},
		{"removed and made again", func(t *testing.T, path string) {
			do(t, os.Remove(path))
			write(t, path, `{"made":"again"}`)
		}},
		{"replaced by a link", func(t *testing.T, path string) {
			write(t, path+".target", `{"by":"link"}`)
			do(t, os.Remove(path), os.Symlink(path+".target", path))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "mcp.json")
			write(t, path, "{}")
			f := watchFile(t, path)
			tt.edit(t, path)
			f.await(tt.name)
			if tt.name != "removed" { // and again: the file is watched as it is now
				f.settle()
				inPlace(t, path)
				f.await("a second edit")
				f.settle()
				renamed(t, path)
				f.await("a third edit")
			}
		})
	}
}

// TestLinkedAndMissingFiles changes files behind links, and makes files and directories that were missing.
func TestLinkedAndMissingFiles(t *testing.T) {
	t.Run("missing", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "mcp.json")
		f := watchFile(t, path)
		write(t, path, "{}")
		f.await("the new file")
	})
	t.Run("missing with its directory", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "later")
		path := filepath.Join(dir, "mcp.json")
		f := watchFile(t, path)
		if _, missing := f.look(); !missing {
			t.Fatal("the directory is not said to be missing")
		}
		do(t, os.Mkdir(dir, 0o700))
		write(t, path, "{}")
		if changed, missing := f.look(); !changed || missing {
			t.Errorf("the new directory changed the files: %v, and is missing: %v", changed, missing)
		}
	})
	t.Run("behind links", func(t *testing.T) {
		dir, elsewhere := t.TempDir(), t.TempDir()
		target := filepath.Join(elsewhere, "real.json")
		middle, path := filepath.Join(elsewhere, "middle.json"), filepath.Join(dir, "mcp.json")
		write(t, target, "{}")
		do(t, os.Symlink("real.json", middle), os.Symlink(middle, path))
		f := watchFile(t, path)
		write(t, target, `{"in":"place"}`)
		f.await("a write to the target")
		f.settle()
		write(t, target+".new", `{"by":"rename"}`)
		do(t, os.Rename(target+".new", target))
		f.await("another target by rename")
		f.settle()
		write(t, filepath.Join(elsewhere, "other.json"), `{"other":"target"}`)
		do(t, os.Symlink("other.json", middle+".new"), os.Rename(middle+".new", middle))
		f.await("a link that names another target")
	})
}
