//go:build unix

package config

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/clientconfig"
)

// TestFilesThatWeWrite has the rows of the path matrix for lockfiles and backups: names that lead elsewhere, links
// that somebody put there before, pipes, and directories that are exchanged while they are written to.
func TestFilesThatWeWrite(t *testing.T) {
	for _, tt := range []struct {
		name string
		try  func(t *testing.T)
	}{
		{"PT-1 backups of files with wild names stay in their directory", wildNames},
		{"PT-3 a link in the place of a backup", linkedBackup},
		{"PT-4 a pipe in the place of a lockfile", pipedLock},
		{"PT-3 a lockfile that is a link is changed where it is", linkedLock},
		{"PT-12 a file that has the beginning of a temporary one's name", takenName},
		{"PT-3 a directory that is exchanged while it is written to", exchanged},
	} {
		t.Run(tt.name, tt.try)
	}
}

// canary makes a file of another's, and gives what checks that it is as it was.
func canary(t *testing.T) (path string, check func()) {
	path = filepath.Join(t.TempDir(), "canary")
	if err := os.WriteFile(path, []byte("canary"), 0o644); err != nil {
		t.Fatal(err)
	}
	return path, func() {
		if text, err := os.ReadFile(path); string(text) != "canary" || err != nil {
			t.Errorf("another's file holds %q, %v", text, err)
		}
	}
}

func wildNames(t *testing.T) {
	base := t.TempDir()
	dir := clientconfig.BackupDir(filepath.Join(base, "backups"))
	names := []string{"../../x", "/etc/passwd", "a/../../b", "..", "~", "$HOME", "a\nb", "C:\\x",
		strings.Repeat("a", 5000), "a\u202eb", "．．／x"}
	for _, name := range names {
		if err := dir.Write(clientconfig.BackupRecord{Client: "cursor", Path: name, Before: []byte("x")}); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if r, err := dir.Read("cursor", name); err != nil || r == nil || r.Path != name {
			t.Errorf("%q comes back as %+v, %v", name, r, err)
		}
	}
	if all, err := os.ReadDir(base); err != nil || len(all) != 1 {
		t.Errorf("beside the directory there are %v, %v", all, err)
	}
	if all, err := os.ReadDir(string(dir)); err != nil || len(all) != len(names) {
		t.Errorf("%d files, %v", len(all), err)
	}
}

func linkedBackup(t *testing.T) {
	other, check := canary(t)
	dir := clientconfig.BackupDir(filepath.Join(t.TempDir(), "backups"))
	if err := dir.Write(clientconfig.BackupRecord{Client: "cursor", Path: "x", Before: []byte("secret")}); err != nil {
		t.Fatal(err)
	}
	all, err := filepath.Glob(filepath.Join(string(dir), "*"))
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	if err := errors.Join(os.Remove(all[0]), os.Symlink(other, all[0])); err != nil {
		t.Fatal(err)
	}
	if err := dir.Write(clientconfig.BackupRecord{Client: "cursor", Path: "x", Before: []byte("secret")}); err != nil {
		t.Error(err)
	}
	check()
	if info, err := os.Lstat(all[0]); err != nil || info.Mode() != 0o600 {
		t.Errorf("the backup is %v, %v", info.Mode(), err)
	}
}

func pipedLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), LockfileName)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := ReadLockfile(path); err == nil { // which would wait for ever, if it were read
		t.Error("it is read")
	}
	if err := UpdateLockfile(path, func([]byte) ([]byte, error) { return []byte("x"), nil }); err == nil {
		t.Error("it is written")
	}
}

func linkedLock(t *testing.T) {
	base := t.TempDir()
	real, link := filepath.Join(base, "real"), filepath.Join(base, LockfileName)
	if err := errors.Join(os.WriteFile(real, []byte("a"), 0o640), os.Symlink("real", link)); err != nil {
		t.Fatal(err)
	}
	if err := UpdateLockfile(link, func(before []byte) ([]byte, error) {
		return append(before, 'b'),
			nil
	}); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(real); string(text) != "ab" || err != nil {
		t.Errorf("it holds %q, %v", text, err)
	}
}

func takenName(t *testing.T) {
	other, check := canary(t)
	base := t.TempDir()
	if err := os.Symlink(other, filepath.Join(base, ".drawbridge-1.tmp")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(base, LockfileName)
	if err := UpdateLockfile(path, func([]byte) ([]byte, error) { return []byte("x"), nil }); err != nil {
		t.Error(err)
	}
	check()
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("the lockfile is %v, %v", info.Mode(), err)
	}
}

// exchanged has a directory be now a directory and now a link to another, while a lockfile in it is written again and
// again. What is written is always a whole lockfile, and nothing else of the other directory changes.
func exchanged(t *testing.T) {
	base := t.TempDir()
	dir, spare, other := filepath.Join(base, "dir"), filepath.Join(base, "spare"), filepath.Join(base, "other")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Mkdir(other, 0o700), os.WriteFile(filepath.Join(other, "canary"),
		[]byte("canary"), 0o600)); err != nil {
		t.Fatal(err)
	}
	whole := bytes.Repeat([]byte("line\n"), 1000)
	over := make(chan struct{})
	var turning sync.WaitGroup
	turning.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			// it may lose a race, too
			_ = errors.Join(os.Rename(dir, spare), os.Symlink(other, dir), os.Remove(dir), os.Rename(spare, dir))
		}
	})
	path := filepath.Join(dir, LockfileName)
	for range 50 {
		// a directory that is not there is an error, and that is fine
		_ = UpdateLockfile(path, func([]byte) ([]byte, error) { return whole, nil })
		for _, at := range []string{path, filepath.Join(other, LockfileName)} {
			if text, err := os.ReadFile(at); err == nil && !bytes.Equal(text, whole) {
				t.Errorf("%s holds %d bytes of %d", at, len(text), len(whole))
			}
		}
	}
	close(over)
	turning.Wait()
	if text, err := os.ReadFile(filepath.Join(other, "canary")); string(text) != "canary" || err != nil {
		t.Errorf("another's file holds %q, %v", text, err)
	}
}
