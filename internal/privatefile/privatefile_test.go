//go:build unix

package privatefile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/privatefile"
)

func TestProtect(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, mode := range map[string]os.FileMode{"private": 0o600, "loose": 0o666, "foreign": 0o600} {
		if err := os.WriteFile(path(name), []byte("x"), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]os.FileMode{"private-dir": 0o700, "loose-dir": 0o777,
		"sticky-dir": 0o777 | os.ModeSticky} {
		if err := os.Mkdir(path(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"link": "private", "broken-link": "nothing", "linked-dir": "private-dir"} {
		if err := os.Symlink(path(to), path(name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name     string
		dir      bool
		repaired bool
		reason   string
	}{
		{name: "missing"},
		{name: "private"},
		{name: "loose", repaired: true, reason: "is open to other users (mode 0666)"},
		{name: "link", reason: "is a symbolic link"},
		{name: "broken-link", reason: "is a symbolic link"},
		{name: "private-dir", reason: "is not a regular file"},
		{name: "private-dir", dir: true},
		{name: "loose-dir", dir: true, repaired: true, reason: "is open to other users (mode 0777)"},
		{name: "sticky-dir", dir: true},
		{name: "linked-dir", dir: true},
		{name: "private", dir: true, reason: "is not a directory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reason := ""
			if insecure, ok := errors.AsType[*privatefile.InsecureError](privatefile.Check(path(tt.name), tt.dir)); ok {
				reason = insecure.Reason
			}
			if reason != tt.reason {
				t.Errorf("Check: %q, want %q", reason, tt.reason)
			}
			repaired, err := privatefile.Protect(path(tt.name), tt.dir)
			if repaired != tt.repaired || (err != nil) != (tt.reason != "" && !tt.repaired) {
				t.Errorf("Protect: %t, %v", repaired, err)
			}
			if err == nil && privatefile.Check(path(tt.name), tt.dir) != nil {
				t.Error("it is not secure afterwards")
			}
		})
	}
}

func TestProtectRefusesForeignOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "foreign")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, 12345, -1); err != nil {
		t.Skip("only root gives files away")
	}
	if _, err := privatefile.Protect(path, false); err == nil || err.Error() != path+
		" belongs to another user (uid 12345)" {
		t.Errorf("got %v", err)
	}
}
