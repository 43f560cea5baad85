package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestAFileIsReadOnce: however many rows name a file, and by however many names, it is read once, and again once it
// changed.
func TestAFileIsReadOnce(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("a file has no identity here")
	}
	dir := t.TempDir()
	path, link := filepath.Join(dir, "run"), filepath.Join(dir, "link")
	err := errors.Join(os.WriteFile(path, []byte("one"), 0o700), os.Symlink(path, link))
	var all ProgramCache
	for range 600 {
		for _, at := range []string{path, link} {
			p, readErr := all.Hash(at)
			want, wantErr := HashProgram(at)
			if p != want {
				t.Fatalf("%+v, not %+v", p, want)
			}
			err = errors.Join(err, readErr, wantErr, all.CheckUnchanged(p))
		}
	}
	if err != nil || all.reads != 1 {
		t.Errorf("%d reads, %v", all.reads, err)
	}
	was, err := all.Hash(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, change := range []func() error{
		func() error { return os.WriteFile(path, []byte("three"), 0o700) },
		func() error { return os.Chtimes(path, time.Time{}, time.Unix(1, 0)) },
		func() error { return errors.Join(os.Remove(path), os.WriteFile(path, []byte("four"), 0o700)) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if err := all.CheckUnchanged(was); err == nil || all.reads != i+2 {
			t.Errorf("change %d: %d reads, %v", i, all.reads, err)
		}
	}
}

// TestWhatIsTooLargeIsNotRead: a file of any size that has nothing in it holds nobody up, and is never what was
// approved.
func TestWhatIsTooLargeIsNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	err := os.WriteFile(path, []byte("one"), 0o700)
	was, readErr := HashProgram(path)
	if err = errors.Join(err, readErr, os.Truncate(path, 200<<30)); err != nil {
		t.Skip(err) // no such files here
	}
	var all ProgramCache
	_, first := HashProgram(path)
	_, second := all.Hash(path)
	for _, err := range []error{first, second, CheckProgramSize(path)} {
		large, ok := errors.AsType[*ProgramTooLargeError](err)
		if !ok || large.Path != path || !strings.Contains(fmt.Sprint(err),
			"too large to be approved: it has 204800 MiB, and 1024 are allowed") {
			t.Errorf("%v", err)
		}
	}
	for _, err := range []error{was.CheckUnchanged(), all.CheckUnchanged(was)} {
		if _, ok := errors.AsType[*ProgramChangedError](err); !ok {
			t.Errorf("%v", err)
		}
	}
	if all.reads != 0 {
		t.Errorf("%d reads", all.reads)
	}
	if err := CheckProgramSize(filepath.Dir(path)); err == nil {
		t.Error("a directory fits")
	}
}
