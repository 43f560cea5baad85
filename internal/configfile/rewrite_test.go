package configfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestDangles(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(in("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"whole": "file", "broken": "nowhere", "again": "broken", "dir": "gone"} {
		if err := os.Symlink(in(to), in(link)); err != nil {
			t.Skip("no symbolic links here:", err)
		}
	}
	for name, want := range map[string]bool{
		"file": false, "none": false, "none/none": false, "file/x": false, "whole": false, "broken": true,
		"again": true, "dir/file": true, "dir/a/b": true,
	} {
		if got := IsDanglingLink(in(name)); got != want {
			t.Errorf("%s dangles: %v", name, got)
		}
	}
}

func TestRewrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a", "b", "file")
	say := func(data string) func(FileState) (FileState, error) {
		return func(FileState) (FileState, error) { return FileState{[]byte(data), true}, nil }
	}
	refused := errors.New("refused")
	if err := RewriteFile(path, func(FileState) (FileState, error) { return FileState{}, refused }); err != refused {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); err == nil {
		t.Error("directories were left behind")
	}
	if err := RewriteFile(path, say("one")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	if err := RewriteFile(link, say("two")); err != nil {
		t.Fatal(err)
	}
	if v, mode, err := ReadFile(path); err != nil || string(v.Data) != "two" || mode != 0o640 {
		t.Errorf("%s, %o, %v", v.Data, mode, err)
	}
	if to, err := os.Readlink(link); err != nil || to != path {
		t.Errorf("the link leads to %q: %v", to, err)
	}
	if err := RewriteFile(path, func(before FileState) (FileState, error) { return FileState{}, nil }); err != nil {
		t.Error(err)
	}
	if v, _, err := ReadFile(path); err != nil || v.Exists || v.Content() != nil ||
		(FileState{nil, true}).Content() == nil {
		t.Errorf("%v, %v", v, err)
	}
}
