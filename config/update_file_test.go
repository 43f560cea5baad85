package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// fileWith makes a file in a directory of its own.
func fileWith(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestRows(t *testing.T) {
	add := func(id drawbridge.ServerID, row string) func(string) error {
		return func(path string) error { return AddServer(path, id, json.RawMessage(row)) }
	}
	put := func(id drawbridge.ServerID, row string) func(string) error {
		return func(path string) error { return PutServer(path, id, json.RawMessage(row)) }
	}
	remove := func(id drawbridge.ServerID) func(string) error {
		return func(path string) error { return RemoveServer(path, id) }
	}
	enabled := func(id drawbridge.ServerID, on bool) func(string) error {
		return func(path string) error { return SetServerEnabled(path, id, on) }
	}
	disabled := func(id drawbridge.ServerID, off bool) func(string) error {
		return func(path string) error { return SetServerDisabled(path, id, off) }
	}
	const row = `{"command":"x","env":{"T":"${T}"}}`
	for name, tt := range map[string]struct {
		file, data string
		change     func(path string) error
		want       string
	}{
		"add to an empty file": {"mcp.json", "", add("a", `{"command":"x"}`),
			"{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"x\"\n    }\n  }\n}\n"},
		"add to servers": {"mcp.json", "{\"x\": 1, // x\n \"servers\": {}}", add("a", `{"command":"x"}`),
			"{\"x\": 1, // x\n \"servers\": {\n  \"a\": {\n   \"command\": \"x\"\n  }\n }}"},
		"add to an array": {"mcp.json", `{"mcpServers": [{"name": "b"}]}`,
			add("a", `{"command":"x","name":"b"}`), `{"mcpServers": [{"name": "b"}, {"name": "a", "command": "x"}]}`},
		"add to the settings": {"drawbridge.toml", "[mcp]\ngrace = 0 # none\n", add("a", row),
			"[mcp]\ngrace = 0 # none\n\n[[mcp.servers]]\nid = \"a\"\ncommand = \"x\"\nenv = { T = \"${T}\" }\n"},
		"add to a table of settings": {"drawbridge.toml", "[mcp.servers.b]\ncommand = 'y'\n", add("a", row),
			"[mcp.servers.b]\ncommand = 'y'\n\n[mcp.servers.a]\ncommand = \"x\"\nenv = { T = \"${T}\" }\n"},
		"an address with a variable": {"mcp.json", `{"servers":{"a":1}}`, put("a", `{"url":"https://${HOST}/mcp"}`),
			`{"servers":{"a":{"url":"https://${HOST}/mcp"}}}`},
		"put where it stands": {"mcp.json",
			`{"servers": {}, "mcpServers": {"a": {"command": "y"}, /* b */ "b": 1}}`, put("a", `{"command":"x"}`),
			`{"servers": {}, "mcpServers": {"a": {"command": "x"}, /* b */ "b": 1}}`},
		"put an element": {"mcp.json", `{"servers": [{"name": "a", "command": "y"}]}`,
			put("a", `{"command":"x"}`), `{"servers": [{"name": "a", "command": "x"}]}`},
		"remove": {"mcp.json", `{"servers": {"a": {}, "b": {}}}`, remove("a"),
			`{"servers": {"b": {}}}`},
		"remove an element": {"mcp.json", `{"servers": [{"name": "a"}]}`, remove("a"), `{"servers": []}`},
		"remove from the settings": {"drawbridge.toml",
			"[[mcp.servers]]\nid = 'a'\n[mcp.servers.env]\nK = 'v'\n\n[serve]\n", remove("a"), "\n[serve]\n"},
		"remove from both": {"mcp.json", `{"servers": {"a": {}, "b": {}}, "mcpServers": [{"name": "a"}]}`,
			remove("a"), `{"servers": {"b": {}}, "mcpServers": []}`},
		"disable": {"mcp.json", `{"servers": {"a": {"enabled": true}}}`, enabled("a", false),
			`{"servers": {"a": {"enabled": false}}}`},
		"enable": {"mcp.json", `{"servers": {"a": {"enabled": false}}}`, enabled("a", true),
			`{"servers": {"a": {"enabled": true}}}`},
		"enable what is on": {"mcp.json", `{"servers": {"a": {}}}`, enabled("a", true),
			`{"servers": {"a": {}}}`},
		"disable in the settings": {"drawbridge.toml", "[[mcp.servers]]\nid = 'a'\n", enabled("a", false),
			"[[mcp.servers]]\nid = 'a'\nenabled = false\n"},
		"a disabled name is sorted": {"mcp.json", `{"disabledServers": ["z", "c"]}`, disabled("m", true),
			`{"disabledServers": ["c", "m", "z"]}`},
		"a first disabled name": {"mcp.json", `{"x":1}`, disabled("m", true), `{"x":1,"disabledServers":["m"]}`},
		"a last disabled name": {"mcp.json", `{"x": 1, "disabledServers": ["m"]}`,
			disabled("m", false), `{"x": 1}`},
	} {
		t.Run(name, func(t *testing.T) {
			path := fileWith(t, tt.file, tt.data)
			if err := tt.change(path); err != nil {
				t.Fatal(err)
			}
			wantDiff(t, "file", tt.want, content(t, path))
		})
	}
}

func TestRowErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		file, data string
		change     func(path string) error
		want       string // the path as $PATH
	}{
		"no name": {"mcp.json", "{}", func(p string) error {
			return AddServer(p, " ",
				json.RawMessage(`{}`))
		}, "Server name cannot be empty"},
		"a long name": {"mcp.json", "{}",
			func(p string) error { return PutServer(p, drawbridge.ServerID(strings.Repeat("a", 101)), nil) },
			"Server name is too long (max 100 characters)"},
		"a name's characters": {"mcp.json", "{}", func(p string) error { return AddServer(p, "a b", nil) },
			"Server name can only contain letters, numbers, dash, underscore, and dot"},
		"a bad row": {"mcp.json", "{}", func(p string) error {
			return AddServer(p, "a",
				json.RawMessage(`{"type":"sse","timeout":1}`))
		}, `Invalid server config: Server "a": sse server requires "url" field`},
		"two things wrong": {"mcp.json", "{}", func(p string) error {
			return AddServer(p, "a", json.RawMessage(`{"url":"http://x","command":"y","cwd":1}`))
		}, `Invalid server config: Server "a": "cwd" must be a string; Server "a": both "command" and "url" are set - server should be either stdio (command) OR http/sse (url), not both`},
		"no row": {"mcp.json", "{}", func(p string) error {
			return AddServer(p, "a",
				json.RawMessage(`secret`))
		}, `Invalid server config: Server "a": this is neither a string in double quotes, a number, true, false nor null`},
		"already there": {"mcp.json", `{"servers":[{"name":"a"}]}`, func(p string) error {
			return AddServer(p, "a",
				json.RawMessage(`{"command":"x"}`))
		}, `Server "a" already exists in $PATH`},
		"not there": {"mcp.json", `{"servers":{}}`, func(p string) error { return RemoveServer(p, "a") },
			`Server "a" not found in $PATH`},
		"nothing to enable": {"mcp.json", ``, func(p string) error { return SetServerEnabled(p, "a", true) },
			`Server "a" not found in $PATH`},
		"a broken file": {"mcp.json", "{\"servers\":\n{\"a\": secret}}",
			func(p string) error { return RemoveServer(p, "a") }, `read $PATH: line 2, column 7: this is not JSON`},
		"a change that breaks it": {"mcp.json", "{}", func(p string) error {
			return UpdateFile(p, func([]byte) ([]byte, error) { return []byte("{"), nil })
		}, `change $PATH: line 2, column 1: this is not JSON`},
		"disabled names of another sort": {"mcp.json", `{"disabledServers":[1]}`,
			func(p string) error { return SetServerDisabled(p, "a", true) },
			`change $PATH: "disabledServers" must be a list of names`},
		"a large file": {"mcp.json", "{" + strings.Repeat(" ", MaxFile) + "}",
			func(p string) error { return SetServerDisabled(p, "a", true) },
			`read $PATH: the file is larger than 4 MiB`},
		"disabled names in the settings": {"x.toml", ``, func(p string) error {
			return SetServerDisabled(p, "a",
				true)
		}, `change $PATH: disabledServers is read from JSON files only`},
	} {
		t.Run(name, func(t *testing.T) {
			path := fileWith(t, tt.file, tt.data)
			err := tt.change(path)
			if err == nil {
				t.Fatal("no error")
			}
			wantDiff(t, "error", tt.want, strings.ReplaceAll(err.Error(), path, "$PATH"))
			wantDiff(t, "file", tt.data, content(t, path))
		})
	}
}

func TestAChangeOfNothingMakesNoDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := SetServerDisabled(filepath.Join(dir, "a", "b", "mcp.json"), "x", false); err != nil {
		t.Fatal(err)
	}
	wantDiff(t, "left", []string(nil), left(t, dir))
}

func TestUpdateKeepsWhatAFileIs(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes and links are different there")
	}
	dir := t.TempDir()
	put := func(path string) {
		t.Helper()
		if err := PutServer(path, "a", json.RawMessage(`{"command":"x"}`)); err != nil {
			t.Fatal(err)
		}
	}
	mode := func(path string) os.FileMode {
		t.Helper()
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode()
	}
	put(filepath.Join(dir, "new/deep/mcp.json"))
	link := filepath.Join(dir, "link.json")
	if err := os.Symlink("new/deep/mcp.json", link); err != nil {
		t.Fatal(err)
	}
	shared := filepath.Join(dir, "shared.json")
	if err := os.WriteFile(shared, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(shared, 0o664); err != nil {
		t.Fatal(err)
	}
	put(shared)
	if err := SetServerEnabled(link, "a", false); err != nil {
		t.Fatal(err)
	}
	dangling := filepath.Join(dir, "dangling.json")
	if err := os.Symlink(filepath.Join(dir, "later.json"), dangling); err != nil {
		t.Fatal(err)
	}
	put(dangling)
	got := map[string]os.FileMode{}
	for _, name := range []string{"new", "new/deep", "new/deep/mcp.json", "shared.json", "link.json", "later.json"} {
		got[name] = mode(filepath.Join(dir, name)) &^ os.ModeSymlink
	}
	wantDiff(t, "modes", map[string]os.FileMode{
		"new": os.ModeDir | 0o700, "new/deep": os.ModeDir | 0o700, "new/deep/mcp.json": 0o600,
		"shared.json": 0o664, "link.json": 0o777, "later.json": 0o600,
	}, got)
	if mode(link)&os.ModeSymlink == 0 || mode(dangling)&os.ModeSymlink == 0 {
		t.Error("a link was replaced by a file")
	}
	if !strings.Contains(content(t, filepath.Join(dir, "new/deep/mcp.json")), `"enabled": false`) {
		t.Error("the link's file was not changed")
	}
}

func TestUpdateLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	no := errors.New("no")
	if err := UpdateFile(filepath.Join(dir, "a/b/c.json"), func([]byte) ([]byte, error) {
		return nil,
			no
	}); !errors.Is(err, no) {
		t.Errorf("error %v", err)
	}
	if err := SetServerDisabled(filepath.Join(dir, "d.json"), "a", false); err != nil {
		t.Error(err)
	}
	if err := UpdateFile(dir, func(data []byte) ([]byte, error) { return data, nil }); err == nil {
		t.Error("a directory was changed")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("left %v, %v", entries, err)
	}
}

const (
	writerFile = "DRAWBRIDGE_TEST_WRITER_FILE"
	writerName = "DRAWBRIDGE_TEST_WRITER_NAME"
	writers    = 8
	writes     = 8
)

// TestWriter is the other process of the tests below.
func TestWriter(t *testing.T) {
	path, name := os.Getenv(writerFile), os.Getenv(writerName)
	switch {
	case path == "":
		t.Skip("it runs as a process of another test")
	case name == "crash":
		if _, err := os.CreateTemp(filepath.Dir(path), ".drawbridge-*.tmp"); err != nil { // what a writer begins with
			t.Fatal(err)
		}
		os.Exit(3)
	}
	for i := range writes {
		if err := AddServer(path, drawbridge.ServerID(fmt.Sprint(name, "-", i)),
			json.RawMessage(`{"command":"x"}`)); err != nil {
			t.Fatal(err)
		}
	}
}

func writer(t *testing.T, path, name string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestWriter$")
	cmd.Env = append(os.Environ(), writerFile+"="+path, writerName+"="+name)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd
}

func TestWritersLoseNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "mcp.json")
	var all sync.WaitGroup
	for p := range 3 {
		cmd := writer(t, path, fmt.Sprint("process", p))
		all.Go(func() {
			if err := cmd.Run(); err != nil {
				t.Error(err)
			}
		})
	}
	for g := range writers {
		all.Go(func() {
			for i := range writes {
				if err := AddServer(path, drawbridge.ServerID(fmt.Sprintf("routine%d-%d", g, i)),
					json.RawMessage(`{"command":"x"}`)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	raw, _, err := configfile.Get(configfile.JSON, []byte(content(t, path)), []string{"mcpServers"})
	if err != nil {
		t.Fatal(err)
	}
	var rows map[string]any
	if err := json.Unmarshal(raw, &rows); err != nil || len(rows) != (3+writers)*writes {
		t.Errorf("%d rows, want %d, %v", len(rows), (3+writers)*writes, err)
	}
}

func TestACrashLeavesTheOldFile(t *testing.T) {
	const before = `{"servers":{"a":{"command":"x"}}}`
	path := fileWith(t, "mcp.json", before)
	exit, ok := errors.AsType[*exec.ExitError](writer(t, path, "crash").Run())
	if !ok || exit.ExitCode() != 3 {
		t.Fatalf("the writer did not crash: %v", exit)
	}
	wantDiff(t, "file", before, content(t, path))
	if err := RemoveServer(path, "a"); err != nil {
		t.Fatal(err)
	}
	wantDiff(t, "file", `{"servers":{}}`, content(t, path))
}

func TestReplaceTexts(t *testing.T) {
	token := []string{"env", "TOKEN"}
	for name, tt := range map[string]struct {
		file, before string
		all          []TextReplacement
		want, err    string
	}{
		"what stands beside it stays": {
			"a.json", `{"servers": {"a": {"command": "x", "env": {/* mine */ "TOKEN": "o\u006ee", "B": "two"}}}}`,
			[]TextReplacement{{token, "one", "${keychain:a}"}, {[]string{"env", "B"}, "two", "<&>"}},
			`{"servers": {"a": {"command": "x", "env": {/* mine */ "TOKEN": "${keychain:a}", "B": "<&>"}}}}`, "",
		},
		"an array": {
			"a.json", `{"mcpServers": [{"name": "b"}, {"name": "a", "headers": {"A": "one"}}]}`,
			[]TextReplacement{{[]string{"headers", "A"}, "one", "1"}},
			`{"mcpServers": [{"name": "b"}, {"name": "a", "headers": {"A": "1"}}]}`, "",
		},
		"TOML": {
			"a.toml", "[[mcp.servers]]\nid = 'a'\n[mcp.servers.env]\nTOKEN = 'one' # mine\n",
			[]TextReplacement{{token, "one", "${keychain:a}"}},
			"[[mcp.servers]]\nid = 'a'\n[mcp.servers.env]\nTOKEN = \"${keychain:a}\" # mine\n", "",
		},
		"all or none": {
			"a.json", `{"servers": {"a": {"env": {"TOKEN": "one", "B": "two"}}}}`,
			[]TextReplacement{{token, "one", "1"}, {[]string{"env", "B"}, "three", "3"}}, "",
			"says something else by now in",
		},
		"no such member": {"a.json", `{"servers": {"a": {"env": {}}}}`, []TextReplacement{{token, "one", "1"}}, "",
			"says something else by now in"},
		"no text": {"a.json", `{"servers": {"a": {"env": {"TOKEN": 1}}}}`, []TextReplacement{{token, "1", "2"}},
			"", "says something else by now in"},
		"no such row": {"a.json", `{"servers": {"b": {}}}`, []TextReplacement{{token, "one", "1"}}, "",
			`Server "a" not found in`},
	} {
		path := filepath.Join(t.TempDir(), tt.file)
		if err := os.WriteFile(path, []byte(tt.before), 0o600); err != nil {
			t.Fatal(err)
		}
		err := ReplaceServerTexts(path, "a", tt.all)
		if _, ok := errors.AsType[ServerEditError](err); tt.err == "" && err != nil || tt.err != "" &&
			(!ok || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s: error %v, want %q", name, err, tt.err)
		}
		if tt.err != "" {
			tt.want = tt.before
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		wantDiff(t, name, tt.want, string(got))
	}
}
