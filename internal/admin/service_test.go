package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/google/go-cmp/cmp"
)

// A world is a home and a project of a person, with a hub that says what it was told.
type world struct {
	t    *testing.T
	dir  string
	env  map[string]string
	told int
	deaf error
	*admin.Service
}

func newWorld(t *testing.T, files map[string]string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	w.env = map[string]string{"HOME": w.path("home")}
	for _, dir := range []string{"home", "project"} {
		if err := os.MkdirAll(w.path(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		w.write(name, text)
	}
	w.Service = admin.New(admin.Options{
		ConfigOptions: config.Options{
			Dir: w.path("project"), Home: w.path("home"), XDGConfig: w.path("home/.config"),
			LookupEnv: func(name string) (string, bool) { v, ok := w.env[name]; return v, ok },
		},
		ReloadServers: func(context.Context) (string, error) { w.told++; return "told", w.deaf },
	})
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

func (w *world) write(name, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(w.path(name)), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(w.path(name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) read(name string) string {
	w.t.Helper()
	data, err := os.ReadFile(w.path(name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	return string(data)
}

// phases says how each configured row is.
func (w *world) phases() (all []string) {
	w.t.Helper()
	list, err := w.ListServers(w.t.Context(), true)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range list.Entries {
		all = append(all, strings.Join([]string{string(e.Name), string(e.Kind), string(e.Phase), string(e.Decision)},
			" "))
	}
	return all
}

func wantDiff(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// fine returns a value, or ends the test.
func fine[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

const (
	userFile    = "home/.config/drawbridge/mcp.json"
	projectFile = "project/.drawbridge/mcp.json"
	theirFile   = "project/.mcp.json"
)

// directoryNote is the note on a server that was added without a scope.
const directoryNote = "configured for this directory only; --scope user configures it for all"

func TestAddApprovesWhatItWrites(t *testing.T) {
	w := newWorld(t, map[string]string{projectFile: `{"servers": {"waits": {"command": "x"}}}`})
	c := fine[admin.Change](t)(w.AddServer(t.Context(), admin.AddRequest{Name: "new", Command: "run",
		Args: []string{"<a> & b", "\u2028"}, Env: []config.NameValue{{Name: "K", Value: "é"}}}))
	wantDiff(t, "change", admin.Change{
		Server: "new", Kind: admin.Added, Scope: config.OriginProject, Path: w.path(projectFile),
		Phase: drawbridge.Idle, Notes: []string{directoryNote}, Live: "told",
	}, c)
	wantDiff(t, "line", `✓ Added server "new" to project config (`+w.path(projectFile)+`); told`, c.String())
	fine[admin.Change](t)(w.AddServer(t.Context(), admin.AddRequest{Name: "own", Scope: config.OriginUser,
		URL: "https://h"}))
	wantDiff(t, "rows", []string{"waits project needs-approval ", "new project idle approved", "own user idle "},
		w.phases())
	if w.told != 2 {
		t.Errorf("told %d times", w.told)
	}
}

func TestAddInTheHomeNeedsNoApproval(t *testing.T) {
	w := newWorld(t, nil)
	r := admin.New(admin.Options{ConfigOptions: config.Options{
		Dir: w.path("home"), Home: w.path("home"), XDGConfig: w.path("home/.config"),
		LookupEnv: func(name string) (string, bool) { v, ok := w.env[name]; return v, ok },
	}})
	c := fine[admin.Change](t)(r.AddServer(t.Context(), admin.AddRequest{Name: "a", Command: "x"}))
	if c.Phase != drawbridge.Idle || len(c.Notes) > 1 || c.Live != "" {
		t.Errorf("change %+v", c)
	}
}

func TestTheSentencesOfASession(t *testing.T) {
	w := newWorld(t, map[string]string{
		projectFile: `{"servers": {"repo": {"command": "x"}}}`,
		userFile:    `{"servers": {"off": {"command": "x", "enabled": false}, "bad": {}, "own": {"command": "x"}}}`,
	})
	roll := fine[admin.ServerList](t)(w.ReadServers(t.Context()))
	does := func(_ any, err error) error { return err }
	add := func(words ...string) error {
		q, err := w.ParseAdd(words)
		if err != nil {
			return err
		}
		return does(w.AddServer(t.Context(), q))
	}
	for want, err := range map[string]error{
		`Server "off" is disabled. Run /mcp enable off first.`:                                                        w.CheckStartable(roll, "off"),
		`Server "repo" needs approval: it comes from a project directory and is not approved yet (/mcp approve repo)`: w.CheckStartable(roll, "repo"),
		`Server "bad" is refused: Server "bad": stdio server requires "command" field`:                                w.CheckStartable(roll, "bad"),
		`Server "of" not found. Did you mean "off"?`:                                                                  w.CheckStartable(roll, "of"),
		`Server "nothing" not found. Configured: repo, off, bad, own.`:                                                does(w.DescribeServer(t.Context(), "nothing")),
		`Nothing to add: give --url U or -- <command...>. Usage: /mcp add <name> ...`:                                 add("x"),
		`Server name required for quick add. Usage: /mcp add <name> ...`:                                              add("--url", "h"),
		`Failed to add server: Server "repo" already exists in ` + w.path(projectFile) +
			` (see /mcp list)`: add("repo", "--", "x"),
		`Failed to add server: Invalid server config: Server "x": header "K" has a line break or another control character in its value`: add("x", "--url", "h", "--header", "K=a\nb"),
		`Server name required. Usage: /mcp remove <name> [--scope project|user]`:                                                         does(w.RemoveServer(t.Context(), "", "")),
		`Server "own" not found in project config.`:                                                                                      does(w.RemoveServer(t.Context(), "own", config.OriginProject)),
		`Invalid --scope value. Use project or user.`:                                                                                    does(w.RemoveServer(t.Context(), "own", "explicit")),
		`Server "own" needs no approval: it is your own (` + w.path(userFile) +
			`:1).`: does(w.DecidableServers(t.Context(), "own")),
	} {
		if err == nil {
			t.Errorf("no error, want %s", want)
			continue
		}
		wantDiff(t, "sentence", want, err.Error())
	}
	if w.CheckStartable(roll, "own") != nil {
		t.Error("a server of one's own cannot be started")
	}
}

func TestAnApprovalIsForWhatWasShown(t *testing.T) {
	w := newWorld(t,
		map[string]string{theirFile: `{"mcpServers": {"a": {"command": "npx", "env": {"T": "hunter2"}}, "b": {"command": "y"}}}`})
	shown := fine[[]admin.ServerEntry](t)(w.DecidableServers(t.Context()))
	w.write(theirFile, `{"mcpServers": {"a": {"command": "sh"}, "b": {"command": "y"}}}`)
	changes := fine[[]admin.Change](t)(w.Approve(t.Context(), shown))
	wantDiff(t, "rows", []string{"a project needs-approval outdated", "b project idle approved"}, w.phases())
	if got := changes[0]; got.Phase != drawbridge.NeedsApproval || !strings.Contains(got.Reason,
		"it changed since you approved it: command: npx → sh; env T: removed (/mcp approve a)") {
		t.Errorf("change %+v", got)
	}
	if w.told != 1 {
		t.Errorf("told %d times", w.told)
	}

	waiting := fine[[]admin.ServerEntry](t)(w.DecidableServers(t.Context()))
	wantDiff(t, "changes", []string{"command: npx → sh", "env T: removed"}, waiting[0].Changes)
	fine[[]admin.Change](t)(w.Reject(t.Context(), waiting))
	if left := fine[[]admin.ServerEntry](t)(w.DecidableServers(t.Context())); len(left) > 0 {
		t.Errorf("waits after it was rejected: %+v", left)
	}
	w.write(theirFile, `{"mcpServers": {"a": {"command": "npx", "env": {"T": "hunter2"}}}}`)
	wantDiff(t, "rows", []string{"a project needs-approval outdated"}, w.phases())
	again := fine[[]admin.ServerEntry](t)(w.DecidableServers(t.Context()))
	if len(again) != 1 || !strings.HasPrefix(again[0].Reason, "it changed since you rejected it: ") {
		t.Errorf("after a change: %+v", again)
	}
	if text := fine[[]byte](t)(json.Marshal(again)); strings.Contains(string(text), "hunter2") {
		t.Errorf("a secret is shown: %s", text)
	}
}

// TestWhatIsShownBeforeAnApproval shows that a row can neither hide what it does nor write to the terminal.
func TestWhatIsShownBeforeAnApproval(t *testing.T) {
	w := newWorld(t, map[string]string{projectFile: `{"servers": {
		"run": {"command": "a\u001b[2K", "args": ["--token", "x"], "cwd": "sub\u202e", "env": {"K\u0007": "!cat /etc/passwd\u001b",
			"NAMED": "GH_TOKEN", "PART": "x${GH_TOKEN}", "PATH": "./bin", "https_proxy": "http://u:pw@h", "PIN": 1234, "NOPE": "${NOPE}"}},
		"web": {"url": "https://u:pw@h/${GH_TOKEN}?k=${GH_TOKEN}&s=abc#f", "headers": {"X": "GH_TOKEN", "Y": "Bearer ${file:~/.ssh/id}", "Z": "hunter2${command:id -u}"},
			"auth": {"type": "oauth", "clientSecret": "abc", "client_id": "id", "token_url": "https://me:abc@as/t?k=abc", "scopes": ["a"], "issuer": "https://${AS}", "resource": "api://x/${AS:-abc}", "flow": "paste"},
			"oauth": {"clientSecret": "!cat /etc/passwd", "callbackPort": 1, "mood": "abc"}}}}`})
	w.env["GH_TOKEN"], w.env["AS"] = "s3cret", "as"
	entries := fine[[]admin.ServerEntry](t)(w.DecidableServers(t.Context()))
	got := [][]config.NameValue{entries[0].ApprovalLines(), entries[1].ApprovalLines()}
	wantDiff(t, "lines", [][]config.NameValue{
		{
			{Name: "command", Value: `a\u001b[2K`}, {Name: "args", Value: `["--token","x"]`},
			{Name: `env K\u0007`, Value: `what this command prints: cat /etc/passwd\u001b`},
			{Name: "env NAMED", Value: "your variable GH_TOKEN"}, {Name: "env PART", Value: "[redacted]${GH_TOKEN}"},
			{Name: "env PATH", Value: "./bin"}, {Name: "env https_proxy", Value: "http://[redacted]@h"},
			{Name: "env PIN", Value: "[redacted]"}, {Name: "env NOPE", Value: "${NOPE}"},
			{Name: "cwd", Value: `sub\u202e`}, {Name: "not set", Value: "NOPE"},
			{Name: "take note",
				Value: "this command is not one of the usual programs: it can start only if you approve this row"},
			{Name: "take note",
				Value: "the variable PATH decides which programs or packages are found, or where what is sent goes"},
			{Name: "take note",
				Value: "the variable https_proxy decides which programs or packages are found, or where what is sent goes"},
		},
		{
			{Name: "url", Value: "https://[redacted]@h/${GH_TOKEN}?k=${GH_TOKEN}&s=[redacted]"},
			{Name: "header X", Value: "your variable GH_TOKEN"}, {Name: "header Y", Value: "Bearer ${file:~/.ssh/id}"},
			{Name: "header Z", Value: "[redacted]${command:id -u}"},
			{Name: "auth", Value: `{"type":"oauth","clientSecret":"[redacted]","client_id":"id","token_url":"https://[redacted]@as/t?k=[redacted]",` +
				`"scopes":["a"],"issuer":"https://${AS}","resource":"api://x/${AS:-abc}","flow":"paste"}`},
			{Name: "oauth", Value: `{"clientSecret":"[redacted]","callbackPort":1,"mood":"[redacted]"}`},
		},
	}, got)
}

func TestAProjectsRowOfTheSameName(t *testing.T) {
	w := newWorld(t, map[string]string{
		projectFile: `{"servers": {"db": {"command": "theirs"}, "last": {"command": "x"}}}`,
		userFile:    `{"servers": {"db": {"command": "mine"}}}`,
	})
	wantDiff(t, "rows", []string{"db project needs-approval ", "last project needs-approval ",
		"db user idle "}, w.phases())
	waiting := fine[[]admin.ServerEntry](t)(w.DecidableServers(t.Context(), "db"))
	wantDiff(t, "lines", []config.NameValue{
		{Name: "command", Value: "theirs"}, {Name: "runs in", Value: w.path("project")}, {Name: "takes the place of",
			Value: w.path(userFile) + ":1"},
		{Name: "take note",
			Value: "this command is not one of the usual programs: it can start only if you approve this row"},
	}, waiting[0].ApprovalLines())
	changes := fine[[]admin.Change](t)(w.Approve(t.Context(), waiting))
	wantDiff(t, "notes", []string{"it counts before the definition at " + w.path(userFile) + ":1"}, changes[0].Notes)
	wantDiff(t, "rows", []string{"db project idle approved", "last project needs-approval ", "db user disabled "},
		w.phases())

	d := fine[admin.ServerDetail](t)(w.DescribeServer(t.Context(), "db"))
	if d.Kind != config.OriginProject || len(d.Others) != 1 || !d.Others[0].Shadowed {
		t.Errorf("get %+v", d)
	}
	fine[admin.Change](t)(w.DisableServer(t.Context(), "db"))
	wantDiff(t, "rows", []string{"db project disabled approved", "last project needs-approval ", "db user disabled "},
		w.phases())
	fine[admin.Change](t)(w.EnableServer(t.Context(), "db"))
	wantDiff(t, "rows", []string{"db project idle approved", "last project needs-approval ", "db user disabled "},
		w.phases())
}

// TestAnApprovedRowMayBeShadowed shows that who approves is told that it makes no difference.
func TestAnApprovedRowMayBeShadowed(t *testing.T) {
	w := newWorld(t, map[string]string{
		theirFile: `{"mcpServers": {"db": {"command": "theirs"}}}`,
		userFile:  `{"servers": {"db": {"command": "mine"}}}`,
	})
	changes := fine[[]admin.Change](t)(w.Approve(t.Context(),
		fine[[]admin.ServerEntry](t)(w.DecidableServers(t.Context()))))
	wantDiff(t, "changes", []admin.Change{{
		Server: "db", Kind: admin.Approved, Scope: config.OriginProject, Path: w.path(theirFile),
		Phase:  drawbridge.Disabled,
		Reason: "shadowed by an earlier definition of the same name", Live: "told",
		Notes: []string{`another definition of "db" counts before it: ` + w.path(userFile) + ":1"},
	}}, changes)
}

func TestEnableTakesAwayAllThatTurnsOff(t *testing.T) {
	w := newWorld(t, map[string]string{
		userFile:                          `{"servers": {"a": {"command": "x", "enabled": false}}, "disabledServers": ["a"]}`,
		"home/.drawbridge/agent/mcp.json": `{"disabledServers": ["a", "b"]}`,
	})
	c := fine[admin.Change](t)(w.EnableServer(t.Context(), "a"))
	wantDiff(t, "phase", drawbridge.Idle, c.Phase)
	wantDiff(t, "own", `{"servers": {"a": {"command": "x", "enabled": true}}}`, w.read(userFile))
	wantDiff(t, "older", `{"disabledServers": ["b"]}`, w.read("home/.drawbridge/agent/mcp.json"))
}

func TestAHubThatDoesNotListenIsANote(t *testing.T) {
	w := newWorld(t, nil)
	w.deaf = errors.New("it is busy")
	c := fine[admin.Change](t)(w.AddServer(t.Context(), admin.AddRequest{Name: "a", Command: "x"}))
	wantDiff(t, "notes", []string{directoryNote, "the running servers did not apply the change: it is busy"}, c.Notes)
	if _, err := w.ReloadServers(t.Context()); !errors.Is(err, w.deaf) {
		t.Errorf("reload: %v", err)
	}
	quiet := admin.New(admin.Options{})
	if text, err := quiet.ReloadServers(t.Context()); text != "" || err != nil {
		t.Errorf("nobody to tell: %q, %v", text, err)
	}
}

func TestReadingMakesNoStore(t *testing.T) {
	w := newWorld(t, map[string]string{theirFile: `{"mcpServers": {"a": {"command": "x"}}}`})
	w.phases()
	fine[admin.ServerDetail](t)(w.DescribeServer(t.Context(), "a"))
	fine[[]admin.ServerEntry](t)(w.DecidableServers(t.Context()))
	if _, err := os.Stat(w.path("home/.local")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a store: %v", err)
	}
}
