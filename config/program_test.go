package config

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/google/go-cmp/cmp"
)

// TestEX3AFileIsWhatItWas: whatever is done to the place where a program stood, only the same bytes are taken for it.
func TestEX3AFileIsWhatItWas(t *testing.T) {
	write := func(t *testing.T, path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		change func(t *testing.T, path string)
		want   string // why it is not what it was; empty where it is
	}{
		"nothing":       {func(*testing.T, string) {}, ""},
		"touched":       {func(t *testing.T, path string) { write(t, path, "one") }, ""},
		"other content": {func(t *testing.T, path string) { write(t, path, "two") }, "what the file holds has changed"},
		"other content with the old date": {func(t *testing.T, path string) {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, path, "two")
			if err := os.Chtimes(path, time.Time{}, info.ModTime()); err != nil {
				t.Fatal(err)
			}
		}, "what the file holds has changed"},
		"gone": {func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}, "no such file or directory"},
		"a directory": {func(t *testing.T, path string) {
			if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
				t.Fatal(err)
			}
		}, "is not a regular file"},
		"a link to another": {func(t *testing.T, path string) {
			write(t, path+"2", "two")
			if err := errors.Join(os.Remove(path), os.Symlink(path+"2", path)); err != nil {
				t.Skip(err)
			}
		}, "what the file holds has changed"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "run")
			write(t, path, "one")
			p, err := HashProgram(path)
			if err != nil {
				t.Fatal(err)
			}
			want := ProgramFile{path, "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"}
			if diff := cmp.Diff(want, p); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			tt.change(t, path)
			err = p.CheckUnchanged()
			var changed *ProgramChangedError
			switch {
			case tt.want == "" && err == nil:
			case !errors.As(err, &changed) || changed.FaultCode() != drawbridge.PolicyBlocked:
				t.Errorf("%v", err)
			case tt.want == "is not a regular file" && changed.Why == path+" "+tt.want:
			case changed.Why != tt.want || changed.Path != path:
				t.Errorf("%+v, want %q", changed, tt.want)
			}
		})
	}
}

func TestNothingIsNoProgram(t *testing.T) {
	if err := (ProgramFile{}).CheckUnchanged(); err == nil ||
		err.Error() != "its program was not there when it was approved" {
		t.Error(err)
	}
	if p, err := HashProgram(filepath.Join(t.TempDir(), "x")); !errors.Is(err, os.ErrNotExist) ||
		p != (ProgramFile{}) {
		t.Errorf("%+v, %v", p, err)
	}
}
