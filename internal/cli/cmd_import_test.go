//go:build unix

package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/cli"
	"github.com/google/go-cmp/cmp"
)

// A desk is a home with a project in it, and the commands that are typed there.
type desk struct {
	t             *testing.T
	home, project string
	env           map[string]string
}

// program is what clients are to start.
const program = "/opt/drawbridge/bin/drawbridge"

func newDesk(t *testing.T) *desk {
	t.Helper()
	home := t.TempDir()
	d := &desk{t: t, home: home, project: filepath.Join(home, "project"), env: map[string]string{
		"HOME": home, "PATH": os.Getenv("PATH"), "DRAWBRIDGE_KEYCHAIN": "off",
	}}
	if err := os.Mkdir(d.project, 0o700); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desk) process(in io.Reader, out, stderr io.Writer) cli.Process {
	p := cli.Process{In: in, Out: out, Err: stderr, Dir: d.project, Self: program, Host: "test"}
	p.Env = func(name string) (string, bool) { v, ok := d.env[name]; return v, ok }
	for name, value := range d.env {
		p.Environ = append(p.Environ, name+"="+value)
	}
	return p
}

// run runs a command that must end with that exit code.
func (d *desk) run(want int, args ...string) (out, stderr string) {
	d.t.Helper()
	var o, e bytes.Buffer
	if code := cli.Main(d.t.Context(), args, d.process(strings.NewReader(""), &o, &e)); code != want {
		d.t.Fatalf("drawbridge %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, &o, &e)
	}
	return o.String(), e.String()
}

func (d *desk) write(name, content string) {
	d.t.Helper()
	path := filepath.Join(d.home, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// files has what every file of the home holds, by its path.
func (d *desk) files() map[string]string {
	d.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(d.home, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, d.home)] = string(data)
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return all
}

const fixtures = "../../config/testdata"

// everyone puts the files of every other program that is known into the home and the project.
func (d *desk) everyone() {
	d.t.Helper()
	for _, p := range config.Providers() {
		if p.Name == "native" || p.Name == "mcp-json" { // the latter's file is Claude Code's too
			continue
		}
		from := os.DirFS(filepath.Join(fixtures, p.Name))
		err := fs.WalkDir(from, ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || path == "want.json" {
				return err
			}
			data, err := fs.ReadFile(from, path)
			if inHome, ok := strings.CutPrefix(path, "home/"); ok {
				path = inHome
			}
			d.write(path, strings.ReplaceAll(string(data), "$PROJECT", filepath.ToSlash(d.project)))
			return err
		})
		if err != nil {
			d.t.Fatal(err)
		}
	}
}

// found is what "import --json" prints of each row.
type found struct{ Name, Provider, Status string }

func (d *desk) imported(args ...string) (rows []found, taken []string) {
	d.t.Helper()
	out, _ := d.run(0, append([]string{"import", "--json"}, args...)...)
	var all struct {
		Servers []found
		Taken   []string
	}
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		d.t.Fatal(err)
	}
	return all.Servers, all.Taken
}

// TestImportFromEverywhere has the files of every program in one home.
func TestImportFromEverywhere(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the fixtures stand where Linux has them")
	}
	d := newDesk(t)
	d.everyone()
	before := d.files()
	table, _ := d.run(0, "import")
	first, taken := d.imported()
	if diff := cmp.Diff(before, d.files()); diff != "" || len(taken) > 0 {
		t.Fatalf("without a yes %q were taken, and files changed:\n%s", taken, diff)
	}
	titles, fresh := map[string]string{}, []string{}
	for _, p := range config.Providers() {
		titles[p.Name] = p.Title
	}
	seen := map[string]bool{}
	lines := strings.Split(table, "\n")
	for i, f := range first {
		seen[f.Provider] = true
		line := strings.Fields(lines[1+i])
		if line[0] != f.Name || line[len(line)-1] != f.Status || !strings.Contains(lines[1+i], titles[f.Provider]) {
			t.Errorf("line %d of the table is %q, of %+v", 1+i, lines[1+i], f)
		}
		if f.Status == "new" {
			fresh = append(fresh, f.Name)
		}
	}
	// The native family, the project root and the plugins of Claude Code have nothing to import.
	if len(seen) != len(config.Providers())-3 || len(fresh) < 25 {
		t.Errorf("%d programs and %d new servers were found", len(seen), len(fresh))
	}

	_, taken = d.imported("--yes")
	if diff := cmp.Diff(fresh, taken); diff != "" {
		t.Error("taken over (-want +got):\n", diff)
	}
	after := d.files()
	own := "/.config/drawbridge/mcp.json"
	before[own] = after[own]
	if diff := cmp.Diff(before, after); diff != "" || after[own] == "" {
		t.Error("another file changed (-before +after):\n", diff)
	}

	d.run(0, "import", "--yes")
	second, taken := d.imported("--yes")
	for i := range first {
		if first[i].Status == "new" {
			first[i].Status = "same"
		}
	}
	if diff := cmp.Diff(first, second); diff != "" || len(taken) > 0 {
		t.Errorf("the second time %q were taken, and the table is (-want +got):\n%s", taken, diff)
	}
	if diff := cmp.Diff(after, d.files()); diff != "" {
		t.Error("the second time a file changed (-before +after):\n", diff)
	}
}

// TestConnectEveryClient is connect and disconnect at the file that each client has, and where it has none.
func TestConnectEveryClient(t *testing.T) {
	for _, c := range config.Clients() {
		t.Run(c.ID, func(t *testing.T) {
			d := newDesk(t)
			d.write(".config/drawbridge/mcp.json", `{"servers": {"own": {"command": "own"}}}`)
			d.connectAndBack("without a file", c)
			d.fixture(c)
			d.connectAndBack("with a file", c)
		})
	}
}

func (d *desk) options() config.Options {
	return config.Options{Dir: d.project, LookupEnv: func(name string) (string, bool) {
		v,
			ok := d.env[name]
		return v, ok
	}}
}

// fixture puts the client's file into its place.
func (d *desk) fixture(c config.Client) {
	d.t.Helper()
	from := filepath.Join(fixtures, "clients", c.ID)
	files, err := os.ReadDir(from)
	if err != nil || len(files) != 1 {
		d.t.Fatalf("%d fixtures, %v", len(files), err)
	}
	data, err := os.ReadFile(filepath.Join(from, files[0].Name()))
	if err != nil {
		d.t.Fatal(err)
	}
	dir, _ := strings.CutPrefix(filepath.Dir(c.Path(d.options())), d.home)
	d.write(filepath.ToSlash(filepath.Join(dir, files[0].Name())), string(data))
}

func (d *desk) connectAndBack(name string, c config.Client) {
	d.t.Helper()
	before := d.files()
	d.run(0, "connect", c.ID, "--yes", "--no-list")
	entry, has, err := c.Entry(d.options())
	want := config.ClientEntry{Command: program, Args: []string{"serve"}}
	if diff := cmp.Diff(want, entry); diff != "" || !has || err != nil {
		d.t.Errorf("%s: %v, %v, the entry is (-want +got):\n%s", name, has, err, diff)
	}
	d.run(0, "disconnect", c.ID, "--yes")
	if diff := cmp.Diff(before, d.files()); diff != "" {
		d.t.Errorf("%s: what is left (-before +after):\n%s", name, diff)
	}
}

// TestQuestions types the answers at a terminal.
func TestQuestions(t *testing.T) {
	d := newDesk(t)
	d.write(".cursor/mcp.json", `{"mcpServers": {"docs": {"url": "https://docs.example.com/mcp"}}}`)
	d.answer("n\n", 1, "Copy 1 server into ~/.config/drawbridge/mcp.json? [y/N] ", "nothing was changed", "import")
	d.answer("\n", 1, "[y/N] ", "nothing was changed", "import")
	d.answer("\x04", 1, "[y/N] ", "nothing was changed", "import")
	d.answer("y\n", 0, "[y/N] ", "✓ 1 server copied into ~/.config/drawbridge/mcp.json", "import")
	d.answer("n\n|no\n", 1, "Take them out? [Y/n] |Change ~/.cursor/mcp.json? [y/N] ", "nothing was changed",
		"connect", "cursor", "--no-list")
	d.answer("yes\n", 0, "[y/N] ", "✓ Cursor is connected", "connect", "cursor", "--no-list", "--replace")
	d.answer("Y\n", 0, "[y/N] ", "✓ Cursor is disconnected", "disconnect", "cursor")
	if _, err := os.Stat(filepath.Join(d.home, ".config/drawbridge/mcp.json")); err != nil {
		t.Error(err)
	}
}

// TestSecretsAtATerminal asks for a value that does not show, and for what to do about secrets in plain text.
func TestSecretsAtATerminal(t *testing.T) {
	d := newDesk(t)
	shown := d.answer("s3cret-typed\n", 0, "Value of GITHUB_TOKEN: ",
		"✓ GITHUB_TOKEN is kept, sealed with a key in a file", "secret", "set", "GITHUB_TOKEN")
	if strings.Contains(shown, "s3cret") {
		t.Errorf("what was typed shows:\n%s", shown)
	}
	d.answer("\x04", 1, "Value of OTHER: ", "nothing was kept: there was no answer", "secret", "set", "OTHER")
	d.answer("\n", 2, "Value of OTHER: ", "nothing was kept: the value is empty", "secret", "set", "OTHER")

	d.write(".cursor/mcp.json",
		`{"mcpServers": {"docs": {"url": "https://h", "headers": {"X-Api-Key": "s3cret-key"}}}}`)
	own := ".config/drawbridge/mcp.json"
	const question = "Encrypt 1 secret in files here? [Y/n] "
	d.answer("y\n|\x04", 1, "[y/N] |"+question, "nothing was changed", "import")
	if text := d.files()["/"+own]; text != "" {
		t.Errorf("without an answer it was taken over:\n%s", text)
	}
	d.answer("y\n|n\n", 0, "[y/N] |"+question, "secrets of docs stay in plain text: drawbridge secret move docs",
		"import")
	if text := d.files()["/"+own]; !strings.Contains(text, "s3cret-key") {
		t.Errorf("it was moved:\n%s", text)
	}
	if err := os.Remove(filepath.Join(d.home, own)); err != nil {
		t.Fatal(err)
	}
	d.answer("y\n|\n", 0, "[y/N] |"+question, "✓ Stored 1 secret encrypted on this machine: docs.X-Api-Key", "import")
	if text := d.files()["/"+own]; !strings.Contains(text, `"X-Api-Key": "${keychain:docs.X-Api-Key}"`) {
		t.Errorf("it was not moved:\n%s", text)
	}
	for name, text := range d.files() {
		if strings.Contains(text, "s3cret") && name != "/.cursor/mcp.json" {
			t.Errorf("%s has a secret in it", name)
		}
	}
}

// answer runs a command at a terminal of its own, waits for the question and types the answer; where there are
// several, "|" stands between them. It gives what was on the screen.
func (d *desk) answer(typed string, want int, question, end string, args ...string) string {
	d.t.Helper()
	master, terminal, err := pty.Open()
	if err != nil {
		d.t.Skip("there are no terminals here: ", err)
	}
	defer master.Close()
	ctx, cancel := context.WithTimeout(d.t.Context(), 30*time.Second)
	defer cancel()
	// A question without an answer ends here. The key ends the pending read, without which the terminal stays open.
	defer context.AfterFunc(ctx, func() { _, _ = io.WriteString(master, "\n") })()
	codes := make(chan int, 1)
	go func() {
		codes <- cli.Main(ctx, args, d.process(terminal, terminal, terminal))
		_ = terminal.Close()
	}()
	var seen strings.Builder
	buffer := make([]byte, 4096)
	questions, answers := strings.Split(question, "|"), strings.Split(typed, "|")
	for {
		n, err := master.Read(buffer)
		seen.Write(buffer[:n])
		if len(questions) > 0 && strings.Contains(seen.String(), questions[0]) {
			if _, err := io.WriteString(master, answers[0]); err != nil {
				d.t.Fatal(err)
			}
			questions, answers = questions[1:], answers[1:]
		}
		if err != nil {
			break // the terminal is closed
		}
	}
	if code := <-codes; code != want || !strings.Contains(seen.String(), end) {
		d.t.Errorf("drawbridge %s: exit code %d, want %d and %q:\n%s", strings.Join(args, " "), code, want, end, &seen)
	}
	return seen.String()
}

// TestAQuestionEndsWithTheProgram is Ctrl-C at a question: nothing is changed.
func TestAQuestionEndsWithTheProgram(t *testing.T) {
	d := newDesk(t)
	master, terminal, err := pty.Open()
	if err != nil {
		t.Skip("there are no terminals here: ", err)
	}
	defer master.Close()
	defer terminal.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var out bytes.Buffer
	if code := cli.Main(ctx, []string{"connect", "zed", "--no-list"}, d.process(terminal, &out, terminal)); code != 1 {
		t.Errorf("exit code %d, want 1\n%s", code, &out)
	}
	if diff := cmp.Diff(map[string]string{}, d.files()); diff != "" {
		t.Error("files (-want +got):\n", diff)
	}
}
