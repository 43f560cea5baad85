//go:build unix

package recordlog_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/recordlog"
)

// TestOtherFilesAreIgnored has rows PT-3 and PT-4 in the directory of the record of calls: links and pipes with names
// like its files' are neither read nor removed, and those that are files are taken in.
func TestOtherFilesAreIgnored(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	s := open(t, dir, recordlog.Options{})
	put(t, s, "one")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other")
	pipe, link := filepath.Join(dir, "00000000000000000000000000-1.spool"),
		filepath.Join(dir, "00000000000000000000000001-1.spool")
	if err := errors.Join(os.WriteFile(other, []byte("canary"), 0o600), os.Symlink(other, link),
		syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Skip(err)
	}
	var got []string
	if err := recordlog.RecoverOrphans(dir, func(f recordlog.File, _ int64) error {
		got = append(got,
			read(t, f)...)
		return nil
	}, none); err != nil {
		t.Error(err)
	}
	if len(got) != 1 || got[0] != "one" {
		t.Errorf("taken in: %q", got)
	}
	for _, path := range []string{other, pipe, link} {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
}
