package backup

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSwapEndedAtEachStep ends a swap before each change of the file system, as a SIGKILL does: afterwards the next
// process finds the old files or the new ones, and nothing else.
func TestSwapEndedAtEachStep(t *testing.T) {
	old := map[string]string{"store": "old", "store-wal": "old", "vault/key": "old"}
	replaced := map[string]string{"store": "new", "vault/key": "new", "id": "new",
		"store.before": "old", "store-wal.before": "old", "vault.before/key": "old"}
	died := errors.New("the process died")
	steps := 0
	for end := 0; ; end++ {
		dir := writeFiles(t, old)
		s := beginSwap(t, dir)
		n, last := 0, ""
		s.step = func(what string) error {
			if n++; n > end {
				last = what
				return died
			}
			return nil
		}
		_, err := s.Commit([]Move{{To: filepath.Join(dir, "store-wal")}, {To: filepath.Join(dir, "store-journal")},
			{From: "store", To: filepath.Join(dir, "store")}, {From: "id", To: filepath.Join(dir, "id")},
			{From: "vault", To: filepath.Join(dir, "vault")}}, ".before")
		if err == nil {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(replaced, readFiles(t, dir)); diff != "" {
				t.Error(diff)
			}
			break
		}
		if !errors.Is(err, died) {
			t.Fatal(err)
		}
		steps++
		if err := s.lock.Close(); err != nil { // what the death of a process does
			t.Fatal(err)
		}
		want := replaced
		if last == "plan" {
			want = old
		}
		for range 2 {
			if err := Recover(filepath.Join(dir, "swap")); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, readFiles(t, dir)); diff != "" {
				t.Errorf("ended before %q: %s", last, diff)
			}
		}
	}
	if steps < 7 {
		t.Errorf("the swap was ended at %d steps, want at least 7", steps)
	}
}

// TestSwapEndedBeforeCommit leaves the old files, and the next swap begins with an empty directory.
func TestSwapEndedBeforeCommit(t *testing.T) {
	old := map[string]string{"store": "old"}
	dir := writeFiles(t, old)
	s := beginSwap(t, dir)
	if err := s.lock.Close(); err != nil {
		t.Fatal(err)
	}
	next, err := Begin(filepath.Join(dir, "swap"))
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(next.PartsDir()); err != nil || len(entries) > 0 {
		t.Errorf("parts of the one before: %v, %v", entries, err)
	}
	if _, err := Begin(filepath.Join(dir, "swap")); !errors.Is(err, ErrBusy) {
		t.Errorf("a second swap: %v, want ErrBusy", err)
	}
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(old, readFiles(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func beginSwap(t *testing.T, dir string) *Swap {
	t.Helper()
	s, err := Begin(filepath.Join(dir, "swap"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"store", "id", "vault/key"} {
		path := filepath.Join(s.PartsDir(), filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("new"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}
