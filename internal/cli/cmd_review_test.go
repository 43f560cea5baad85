//go:build linux || darwin

package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A writingDesk is a desk with a workspace. A client proposes pages at the hub, and a person reviews them at a terminal.
type writingDesk struct {
	*desk
	dir    string
	client *talker
	asked  int
}

func newWritingDesk(t *testing.T) *writingDesk {
	t.Helper()
	dir := t.TempDir()
	d := newDesk(t)
	d.home, d.env["HOME"] = filepath.Join(dir, "home"), filepath.Join(dir, "home")
	d.project = filepath.Join(dir, "project")
	for _, made := range []string{d.home, d.project} {
		if err := os.MkdirAll(made, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d.run(0, "workspace", "init")
	return &writingDesk{desk: d, dir: dir, client: d.talk(), asked: 1}
}

// proposes has the client call a tool, and returns the answer.
func (d *writingDesk) proposes(tool string, arguments map[string]any) string {
	d.t.Helper()
	text, err := json.Marshal(arguments)
	if err != nil {
		d.t.Fatal(err)
	}
	d.asked++
	answer := d.client.ask(d.asked, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, text))
	if !strings.Contains(answer, `"receipt"`) {
		d.t.Fatalf("%s: %s", tool, answer)
	}
	return answer
}

// writes has the person call a tool at the command line.
func (d *writingDesk) writes(tool string, words ...string) {
	d.t.Helper()
	d.run(0, append([]string{"tools", "call", tool}, words...)...)
}

func (d *writingDesk) reviews() *terminal {
	d.t.Helper()
	return atTerminal(d.t, d.dir, "review")
}

const pageQuestion = "a accept, r reject, e edit, s skip, q quit: "

// TestReviewAtATerminal accepts, rejects and skips, and quits.
func TestReviewAtATerminal(t *testing.T) {
	d := newWritingDesk(t)
	d.writes("page_create", "title=Source", "text=A fact.\n")
	d.proposes("page_create", map[string]any{"title": "First", "text": "One\u202e `\\x`.\n", "sources": []string{"source"}})
	d.proposes("page_create", map[string]any{"title": "Second", "text": "Two.\n"})
	d.proposes("page_create", map[string]any{"title": "Third", "text": "Three.\n"})

	c := d.reviews()
	c.see("1 of 3  candidate: First (first)")
	c.see("written: candidate, agent-produced by ")
	c.see("made from: Source (source)")
	c.see("+One\\u202e `\\\\x`.")
	c.answer(pageQuestion, "x")
	c.answer(pageQuestion, "a")
	c.see("✓ accepted")
	c.see("2 of 3  candidate: Second (second)")
	c.answer(pageQuestion, "r")
	c.see("✓ rejected")
	c.answer(pageQuestion, "s")
	if screen, code := c.ends(); code != 0 || !strings.Contains(screen, "2 decided, 1 left") {
		t.Errorf("exit code %d\n%s", code, screen)
	}
	out, _ := d.run(0, "workspace", "tree")
	if !regexp.MustCompile(`First +first +canonical`).MatchString(out) || strings.Contains(out, "Second") ||
		!regexp.MustCompile(`Third +third +candidate`).MatchString(out) {
		t.Errorf("the tree:\n%s", out)
	}
	c = d.reviews()
	c.see("1 of 1  candidate: Third")
	c.answer(pageQuestion, "q")
	if screen, code := c.ends(); code != 0 || !strings.Contains(screen, "0 decided, 1 left") {
		t.Errorf("exit code %d\n%s", code, screen)
	}
}

// TestReviewNamesMemory: an item of memory that waits has its tier and its name.
func TestReviewNamesMemory(t *testing.T) {
	d := newWritingDesk(t)
	d.proposes("memory_write", map[string]any{"tier": "workspace", "name": "style", "text": "Short sentences."})
	var item struct {
		Candidates []struct{ Revision string }
	}
	out, _ := d.run(0, "review", "list", "--json")
	if err := json.Unmarshal([]byte(out), &item); err != nil || len(item.Candidates) != 1 {
		t.Fatalf("%v %s", err, out)
	}
	if out, _ = d.run(0, "review", "list"); !strings.Contains(out, "  memory workspace/style  agent-produced") {
		t.Errorf("the list:\n%s", out)
	}
	_, stderr := d.run(0, "review", "accept", item.Candidates[0].Revision, "--yes")
	if !strings.Contains(stderr, "candidate: memory workspace/style") {
		t.Errorf("the entry:\n%s", stderr)
	}
}

// TestReviewOfChangedText: what has changed since it was proposed over is shown, and asked about again. A source that
// changed flags what was made from it.
func TestReviewOfChangedText(t *testing.T) {
	d := newWritingDesk(t)
	d.writes("page_create", "title=Plan", "text=First the tests.\n")
	d.proposes("page_update", map[string]any{"page": "plan", "slot": "b1", "text": "First the code.\n"})
	d.writes("page_update", "page=plan", "slot=b1", "text=First the design.\n")

	c := d.reviews()
	c.see("1 of 1  deviation: block of Plan (plan)")
	c.see("It disagrees with a text that a person has accepted.")
	c.see("The text that it would replace has changed since.")
	c.see("-First the tests.")
	c.see("+First the code.")
	c.answer(pageQuestion, "a")
	c.see("-First the design.")
	c.answer("Accept it over the changed text? [y/N] ", "")
	c.answer(pageQuestion, "a")
	c.answer("Accept it over the changed text? [y/N] ", "y")
	c.see("✓ accepted")
	if screen, code := c.ends(); code != 0 {
		t.Errorf("exit code %d\n%s", code, screen)
	}
	if out, _ := d.run(0, "workspace", "show", "plan"); !strings.Contains(out, "First the code.") {
		t.Errorf("the page:\n%s", out)
	}
	d.proposes("page_create", map[string]any{"title": "Summary", "text": "Sum.\n", "sources": []string{"plan"}})
	d.run(0, "review", "accept", "--yes", d.candidate())
	d.writes("page_update", "page=plan", "slot=b1", "text=Last the code.\n")
	c = d.reviews()
	c.see("1 of 1  flag: Summary (summary)")
	c.see("It was made from ")
	c.see("+Last the code.")
	c.see("+Sum.")
	c.answer("v looked at, s skip, q quit: ", "v")
	if screen, code := c.ends(); code != 0 || !strings.Contains(screen, "1 decided, 0 left") {
		t.Errorf("exit code %d\n%s", code, screen)
	}
}

// candidate returns the first revision that waits.
func (d *writingDesk) candidate() string {
	d.t.Helper()
	out, _ := d.run(0, "review", "list")
	id := regexp.MustCompile(`bk_[0-9A-Z]+`).FindString(out)
	if id == "" {
		d.t.Fatalf("nothing waits: %s", out)
	}
	return id
}

// TestReviewWithAnEditor: the person's version takes the place of a text that waits, and of one that is there already.
func TestReviewWithAnEditor(t *testing.T) {
	d := newWritingDesk(t)
	d.writes("page_create", "title=Plan", "text=First the tests.\n")
	d.proposes("page_update", map[string]any{"page": "plan", "slot": "b1", "text": "Frist the code.\n"})
	d.proposes("page_create", map[string]any{"title": "New", "text": "# New\n\nOne.\n\nTwo.\n\nThree.\n"})
	editor := filepath.Join(d.dir, "editor")
	script := "#!/bin/sh\nsed -e 's/Frist/First/' -e '/Three/d' -e 's/^Two.$/2./' \"$1\" >\"$1.new\" && mv \"$1.new\" \"$1\"\n"
	if err := os.WriteFile(editor, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	c := atTerminal(t, d.dir, "review")
	c.answer(pageQuestion, "e")
	c.see("✗ set the variable EDITOR to an editor")
	c.answer(pageQuestion, "q")
	c.ends()
	c = atTerminalWith(t, d.dir, []string{"EDITOR=" + editor}, "review")
	c.answer(pageQuestion, "e")
	c.see("✓ your version is written")
	c.answer(pageQuestion, "e")
	c.see("✓ your version is written")
	if screen, code := c.ends(); code != 0 || !strings.Contains(screen, "2 decided, 0 left") {
		t.Errorf("exit code %d\n%s", code, screen)
	}
	out, _ := d.run(0, "workspace", "show", "plan")
	if !strings.Contains(out, "First the code.") || !strings.Contains(out, "plan · canonical, authored by ") || strings.Contains(out, "agent") {
		t.Errorf("the page:\n%s", out)
	}
	out, _ = d.run(0, "workspace", "show", "new")
	if !strings.Contains(out, "One.\n\n") || !strings.Contains(out, "2.\n") || strings.Contains(out, "Three") || !strings.Contains(out,
		"new · canonical, agent-produced by ") || !regexp.MustCompile(`\[b3: canonical, authored by `).MatchString(out) {
		t.Errorf("the page:\n%s", out)
	}
	if _, stderr := d.run(0, "review", "list"); !strings.Contains(stderr, "Nothing waits for you.") {
		t.Errorf("after that: %s", stderr)
	}
}

// TestAHubOpensANewWorkspace: init while a hub runs takes effect for commands and for the clients that are there.
func TestAHubOpensANewWorkspace(t *testing.T) {
	d := newDesk(t)
	client := d.talk()
	if answer := client.ask(2, "tools/list", `{}`); strings.Contains(answer, "page_read") {
		t.Fatal(answer)
	}
	if _, stderr := d.run(1, "workspace", "tree"); !strings.Contains(stderr, "there is no workspace yet (drawbridge workspace init)") {
		t.Errorf("before: %s", stderr)
	}
	d.run(0, "workspace", "init")
	d.run(0, "tools", "call", "page_create", "title=Plan")
	if out, _ := d.run(0, "workspace", "tree"); !strings.Contains(out, "plan") {
		t.Errorf("after: %s", out)
	}
	if answer := client.ask(3, "tools/call", `{"name":"page_read","arguments":{"page":"plan"}}`); !strings.Contains(answer, `"slug":"plan"`) {
		t.Errorf("the client reads %s", answer)
	}
}

// TestImportShowsABar draws how far an import is.
func TestImportShowsABar(t *testing.T) {
	d := newWritingDesk(t)
	for i := range 60 {
		file := filepath.Join(d.project, "notes", fmt.Sprintf("%d.md", i))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("text\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := atTerminal(t, d.dir, "workspace", "import", "notes")
	c.see("] 50 of 60")
	if screen, code := c.ends(); code != 0 || !strings.Contains(screen, "✓ imported 60 files") {
		t.Errorf("exit code %d\n%s", code, screen)
	}
}

// TestAnInterruptedImportGoesOn: Ctrl-C ends an import, and the same command goes on with it.
func TestAnInterruptedImportGoesOn(t *testing.T) {
	d := newWritingDesk(t)
	const files = 1000
	for i := range files {
		file := filepath.Join(d.project, "notes", fmt.Sprintf("%d.md", i))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(strings.Repeat("A line.\n\n", 20)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Args, cmd.Dir = []string{"interruptible", "workspace", "import", "notes"}, d.project
	cmd.Env = []string{"HOME=" + d.home, "PATH=" + os.Getenv("PATH"), "TERM=xterm", "GORACE=" + quickExit, "DRAWBRIDGE_KEYCHAIN=off"}
	c := start(t, d.dir, cmd)
	c.see("] 250 of") // the first batches are written
	if _, err := c.tty.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	if screen, code := c.ends(); code != 130 || !strings.Contains(screen, "the same command goes on with the others") {
		t.Errorf("exit code %d\n%s", code, screen)
	}
	out, _ := d.run(0, "workspace", "import", "notes", "--json")
	var done struct{ Imported, Known int }
	if err := json.Unmarshal([]byte(out), &done); err != nil || done.Known == 0 || done.Imported == 0 || done.Known+done.Imported != files {
		t.Errorf("then: %s, %v", out, err)
	}
}
