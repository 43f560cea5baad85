//go:build !nomcp

package gateway

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/sandbox"
)

// TestScrubReachesEverything: a scrubbed text is in no file of Drawbridge any more, and in no kept result.
func TestScrubReachesEverything(t *testing.T) {
	const secret = "hunter2 is the password"
	state, dir := t.TempDir(), t.TempDir()
	w, err := store.OpenWorkspace(t.Context(), filepath.Join(state, "drawbridge", "workspace.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l := library{open(t, Config{Dir: dir, Store: filepath.Join(state, "drawbridge", "drawbridge.db"), LookupEnv: func(name string) (string, bool) {
		v, ok := map[string]string{"HOME": state, "XDG_STATE_HOME": state, "DRAWBRIDGE_KEYCHAIN": "off", "XDG_CACHE_HOME": cacheDir(t)}[name]
		return v, ok
	}}), t}
	person := l.person()
	made := l.does(person, "page_create", arguments{"title": "Page: " + secret, "slug": "page", "text": secret + "\n"})
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("I noted: "+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.does(person, "read", arguments{"path": "notes.txt"})
	l.does(person, "write", arguments{"path": "notes.txt", "content": "nothing\n"}) // the earlier content is kept
	kept, err := l.call(person, "run_python", arguments{"code": "tools.keep(tools.page_read(page='page'))"})
	if errors.Is(err, sandbox.ErrNoInterpreter) {
		t.Skip(err)
	}
	_, id, _ := strings.Cut(rawjson.GetString(kept, "repr"), "result ")
	id, _, _ = strings.Cut(id, ",")
	read := arguments{"code": "print(tools.result('" + id + "').text())"}
	if out, err := l.call(person, "run_python", read); err != nil || !strings.Contains(string(out), secret) {
		t.Fatalf("the kept result %s is %s, %v", id, out, err)
	}
	found := func() (names []string) {
		err := filepath.WalkDir(state, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if bytes.Contains(bytes.ToLower(data), []byte(secret)) {
				names = append(names, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	if names := strings.Join(found(), " "); !strings.Contains(names, "undo") || !strings.Contains(names, "workspace.db") {
		t.Fatalf("before the scrub, the text is in %s", names)
	}
	l.does(person, "workspace_scrub", arguments{"revisions": []string{rawjson.GetString(made, "receipt", "revision")}})
	if names := found(); len(names) > 0 {
		t.Errorf("the text is in %q after the scrub", names)
	}
	if out, err := l.call(person, "run_python", read); strings.Contains(string(out), secret) {
		t.Errorf("the kept result is there after the scrub: %s, %v", out, err)
	}
}
