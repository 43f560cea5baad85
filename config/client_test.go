package config

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

// shapes are our entries as each client wants them.
var shapes = map[string]string{
	"claude-code":    `{"type":"stdio","command":"/opt/drawbridge","args":["serve","--client","x"],"env":{"LEVEL":"s3cret"}}`,
	"claude-desktop": `{"command":"/opt/drawbridge","args":["serve","--client","x"],"env":{"LEVEL":"s3cret"}}`,
	"cursor":         `{"type":"stdio","command":"/opt/drawbridge","args":["serve","--client","x"],"env":{"LEVEL":"s3cret"}}`,
	"vscode":         `{"type":"stdio","command":"/opt/drawbridge","args":["serve","--client","x"],"env":{"LEVEL":"s3cret"}}`,
	"windsurf":       `{"command":"/opt/drawbridge","args":["serve","--client","x"],"env":{"LEVEL":"s3cret"}}`,
	"codex":          `{"args":["serve","--client","x"],"command":"/opt/drawbridge","env":{"LEVEL":"s3cret"}}`,
	"gemini":         `{"command":"/opt/drawbridge","args":["serve","--client","x"],"env":{"LEVEL":"s3cret"}}`,
	"opencode":       `{"type":"local","command":["/opt/drawbridge","serve","--client","x"],"environment":{"LEVEL":"s3cret"},"enabled":true}`,
	"zed":            `{"command":"/opt/drawbridge","args":["serve","--client","x"],"env":{"LEVEL":"s3cret"}}`,
	"crush":          `{"type":"stdio","command":"/opt/drawbridge","args":["serve","--client","x"],"env":{"LEVEL":"s3cret"}}`,
	"goose":          `{"args":["serve","--client","x"],"cmd":"/opt/drawbridge","enabled":true,"env_keys":[],"envs":{"LEVEL":"s3cret"},"name":"drawbridge","timeout":300,"type":"stdio"}`,
	"cline":          `{"type":"stdio","command":"/opt/drawbridge","args":["serve","--client","x"],"env":{"LEVEL":"s3cret"},"disabled":false}`,
}

var ours = ClientEntry{Command: "/opt/drawbridge", Args: []string{"serve", "--client", "x"},
	Env: []NameValue{{"LEVEL", "s3cret"}}}

// A desk is a home with one client's configuration in it, or without.
type desk struct {
	t      *testing.T
	client Client
	o      ConnectOptions
	path   string
}

// newDesk puts the client's fixture in its place.
func newDesk(t *testing.T, c Client, fixture bool) (*desk, []byte) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the fixtures have the paths of other systems")
	}
	home := t.TempDir()
	d := &desk{t: t, client: c, o: ConnectOptions{
		Options:   Options{Home: home, Dir: home, LookupEnv: func(string) (string, bool) { return "", false }},
		BackupDir: filepath.Join(t.TempDir(), "backups"),
	}}
	d.path = c.Path(d.o.Options)
	if !fixture {
		return d, nil
	}
	files, err := os.ReadDir("testdata/clients/" + c.ID)
	if err != nil || len(files) != 1 {
		t.Fatalf("%d fixtures, %v", len(files), err)
	}
	data, err := os.ReadFile("testdata/clients/" + c.ID + "/" + files[0].Name())
	if err != nil {
		t.Fatal(err)
	}
	d.path = filepath.Join(filepath.Dir(d.path), files[0].Name())
	if err := os.MkdirAll(filepath.Dir(d.path), 0o700); err != nil {
		t.Fatal(err)
	}
	d.write(data)
	return d, data
}

func (d *desk) write(data []byte) {
	d.t.Helper()
	if err := os.WriteFile(d.path, data, 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) read() []byte { return []byte(content(d.t, d.path)) }

func (d *desk) connect(e ClientEntry, replace ...string) *ConnectPlan {
	d.t.Helper()
	plan, err := PlanConnect(d.o, d.client.ID, e, replace)
	return d.apply(plan, err)
}

func (d *desk) disconnect() *ConnectPlan {
	d.t.Helper()
	plan, err := PlanDisconnect(d.o, d.client.ID)
	return d.apply(plan, err)
}

func (d *desk) apply(plan *ConnectPlan, err error) *ConnectPlan {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
	if plan.Path != d.path {
		d.t.Errorf("the plan is about %s, not %s", plan.Path, d.path)
	}
	if strings.Contains(plan.Diff, "s3cret") {
		d.t.Errorf("the diff shows a secret:\n%s", plan.Diff)
	}
	if plan.IsEmpty() != (plan.Diff == "") || plan.IsEmpty() != (len(plan.Changes) == 0) {
		d.t.Errorf("nothing to do is %v, with %q and\n%s", plan.IsEmpty(), plan.Changes, plan.Diff)
	}
	if err := plan.Apply(); err != nil {
		d.t.Fatal(err)
	}
	return plan
}

// row gives a server of the client's file; "" where it is not.
func (d *desk) row(name string) string {
	d.t.Helper()
	row, _, err := configfile.Get(d.client.dialect.Format, d.read(), d.client.entryPath(name))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(row)
}

// left lists what is in a directory and below.
func left(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if path != dir && !os.IsNotExist(err) {
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestConnectAndBack(t *testing.T) {
	for _, c := range Clients() {
		t.Run(c.ID, func(t *testing.T) {
			for name, replace := range map[string][]string{"beside": nil, "in their place": {"github",
				"none", "github"}} {
				t.Run(name, func(t *testing.T) { connectAndBack(t, c, replace) })
			}
		})
	}
}

func connectAndBack(t *testing.T, c Client, replace []string) {
	d, before := newDesk(t, c, true)
	github := d.row("github")
	d.connect(ours, replace...)
	wantDiff(t, "entry", shapes[c.ID], d.row(ClientEntryName))
	if gone := d.row("github") == ""; gone != (replace != nil) {
		t.Errorf("github is gone: %v", gone)
	}
	if d.row("files") == "" && c.ID != "vscode" {
		t.Error("another entry is gone")
	}
	if !d.connect(ours, replace...).IsEmpty() {
		t.Error("connected twice, something was done")
	}
	connected := d.read()
	other := ours
	other.Command = "/usr/bin/drawbridge"
	d.connect(other)
	if !strings.Contains(d.row(ClientEntryName), other.Command) {
		t.Error("another command did not replace the first")
	}
	d.disconnect()
	if diff := cmp.Diff(string(before), string(d.read())); diff != "" {
		t.Error("disconnected (-want +got):\n", diff)
	}
	if paths := left(t, filepath.Dir(d.o.BackupDir)); len(paths) > 0 {
		t.Errorf("left of the backups: %q", paths)
	}
	if !d.disconnect().IsEmpty() {
		t.Error("disconnected twice, something was done")
	}

	// Again, with an edit of somebody else's in between.
	d.connect(ours, replace...)
	wantDiff(t, "connected again", string(connected), string(d.read()))
	edited, err := configfile.Set(c.dialect.Format, d.read(), c.entryPath("mine"),
		json.RawMessage(`{"command":"m","note":"keep"}`))
	if err != nil {
		t.Fatal(err)
	}
	d.write(edited)
	d.connect(other)
	d.disconnect()
	if d.row(ClientEntryName) != "" || d.row("github") != github || !strings.Contains(d.row("mine"), "keep") {
		t.Errorf("after an edit, disconnected:\n%s", d.read())
	}
}

func TestConnectWithoutAFile(t *testing.T) {
	for _, c := range Clients() {
		t.Run(c.ID, func(t *testing.T) {
			d, _ := newDesk(t, c, false)
			d.connect(ours, "github")
			wantDiff(t, "entry", shapes[c.ID], d.row(ClientEntryName))
			d.connect(ClientEntry{Command: "/usr/bin/drawbridge", Args: []string{"serve"}})
			d.disconnect()
			if paths := left(t, d.o.Home); len(paths) > 0 {
				t.Errorf("left: %q", paths)
			}
		})
	}
}

func TestDisconnectWithoutABackup(t *testing.T) {
	for _, c := range Clients() {
		t.Run(c.ID, func(t *testing.T) {
			d, before := newDesk(t, c, true)
			d.connect(ours)
			if err := os.RemoveAll(d.o.BackupDir); err != nil {
				t.Fatal(err)
			}
			d.disconnect()
			wantDiff(t, "file", string(before), string(d.read()))
		})
	}
}

func TestConnectALargeFile(t *testing.T) {
	c, _ := LookupClient("claude-code")
	d, _ := newDesk(t, c, true)
	before := []byte(`{"history":[` + strings.Repeat(`{"text":"s3cret`+strings.Repeat(" and more", 100)+`"},`,
		MaxFile/900) + `{}],"mcpServers":{}}`)
	d.write(before)
	if plan := d.connect(ours); len(plan.Diff) > 640 {
		t.Errorf("the preview has %d bytes", len(plan.Diff))
	}
	d.disconnect()
	if !bytes.Equal(before, d.read()) {
		t.Error("the file is not what it was")
	}
}

func TestPlansSayWhatTheyDo(t *testing.T) {
	c, _ := LookupClient("gemini")
	d, _ := newDesk(t, c, true)
	wantDiff(t, "connect", []string{`remove "github" from mcpServers`, `add "drawbridge" to mcpServers`},
		d.connect(ours, "github").Changes)
	wantDiff(t, "connect otherwise", []string{`change "drawbridge" in mcpServers`},
		d.connect(ClientEntry{Command: "/d"}).Changes)
	wantDiff(t, "disconnect", []string{`remove "drawbridge" from mcpServers`, `add "github" to mcpServers again`},
		d.disconnect().Changes)
	if err := os.Remove(d.path); err != nil {
		t.Fatal(err)
	}
	wantDiff(t, "connect without a file", `--- /dev/null
+++ $PATH
@@ -1 +1 @@
+{
+  "mcpServers": {
+    "drawbridge": {
+      "command": "/opt/drawbridge",
+      "args": ["serve", "--client", "x"],
+      "env": {
+        "LEVEL": "…"
+      }
+    }
+  }
+}
`, strings.ReplaceAll(d.connect(ours).Diff, d.path, "$PATH"))
	wantDiff(t, "and back", []string{"remove " + d.path + `, which was created for "drawbridge"`}, d.disconnect().Changes)
}

func TestBackupsAreNobodyElses(t *testing.T) {
	c, _ := LookupClient("crush")
	d, _ := newDesk(t, c, true)
	d.connect(ours)
	files := left(t, d.o.BackupDir)
	if len(files) != 1 {
		t.Fatalf("backups: %q", files)
	}
	got := map[string]os.FileMode{}
	for _, path := range []string{d.o.BackupDir, files[0]} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		got[filepath.Ext(path)] = info.Mode()
	}
	wantDiff(t, "modes", map[string]os.FileMode{"": os.ModeDir | 0o700, ".json": 0o600}, got)
	if err := os.WriteFile(files[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := PlanDisconnect(d.o, c.ID)
	if want := "read the backup " + files[0] + ": it is not a record of " + d.path; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestAnEntryOfThePersonsOwnComesBack(t *testing.T) {
	c, _ := LookupClient("cursor")
	d, _ := newDesk(t, c, true)
	d.write([]byte(`{"mcpServers": {"drawbridge": {"command": "mine"}}}`))
	plan := d.connect(ours)
	wantDiff(t, "changes", []string{`change "drawbridge" in mcpServers`}, plan.Changes)
	d.write(bytes.Replace(d.read(), []byte("{"), []byte("{ "), 1))
	wantDiff(t, "changes back", []string{`restore "drawbridge" in mcpServers`}, d.disconnect().Changes)
	wantDiff(t, "entry", `{"command":"mine"}`, d.row(ClientEntryName))
}

// TestTheNewestReplacedEntryComesBack: who wrote an entry again meant the newer one.
func TestTheNewestReplacedEntryComesBack(t *testing.T) {
	c, _ := LookupClient("cursor")
	d, _ := newDesk(t, c, false)
	if err := os.MkdirAll(filepath.Dir(d.path), 0o700); err != nil {
		t.Fatal(err)
	}
	d.write([]byte(`{"mcpServers": {"a": {"command": "old"}}}`))
	d.connect(ours, "a")
	edit := func(name, row string) {
		t.Helper()
		data, err := configfile.Set(configfile.JSON, d.read(), c.entryPath(name), json.RawMessage(row))
		if err != nil {
			t.Fatal(err)
		}
		d.write(data)
	}
	edit("a", `{"command": "new"}`)
	d.connect(ours, "a")
	edit("b", `{"command": "b"}`)
	d.disconnect()
	wantDiff(t, "a", `{"command":"new"}`, d.row("a"))
}

func TestAFileThatChangedIsLeftAlone(t *testing.T) {
	c, _ := LookupClient("zed")
	d, before := newDesk(t, c, true)
	plan, err := PlanConnect(d.o, c.ID, ours, nil)
	if err != nil {
		t.Fatal(err)
	}
	edited := append(before, "// more\n"...)
	d.write(edited)
	err = plan.Apply()
	if want := "change " + d.path +
		": the file has changed since it was read (run the command again)"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	wantDiff(t, "file", string(edited), string(d.read()))
	if paths := left(t, filepath.Dir(d.o.BackupDir)); len(paths) > 0 {
		t.Errorf("left of the backups: %q", paths)
	}
}

func TestConnectErrors(t *testing.T) {
	c, _ := LookupClient("codex")
	d, _ := newDesk(t, c, true)
	d.write([]byte("a = s3cret"))
	for name, tt := range map[string]struct {
		o     ConnectOptions
		id    string
		entry ClientEntry
		want  string
	}{
		"no client": {d.o, "emacs", ours,
			`find the client: unknown client "emacs" (use one of claude-code, claude-desktop, cursor, vscode, windsurf, codex, gemini, opencode, zed, crush, goose, cline)`},
		"a relative command": {d.o, "cursor", ClientEntry{Command: "drawbridge"},
			"connect cursor: the command must be an absolute path"},
		"no backups": {ConnectOptions{Options: d.o.Options}, "gemini", ours, "back up " +
			filepath.Join(d.o.Home, ".gemini/settings.json") + ": the directory for backups must be an absolute path"},
		"no home": {ConnectOptions{Options{LookupEnv: d.o.LookupEnv}, d.o.BackupDir}, "gemini", ours,
			"find the configuration of Gemini CLI: the home directory is not known"},
		"a broken file": {d.o, "codex", ours, "read " + d.path + ": line 1: this is not TOML"},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := PlanConnect(tt.o, tt.id, tt.entry, nil)
			if err == nil || err.Error() != tt.want || plan != nil {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}
