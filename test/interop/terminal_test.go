//go:build peers

package interop

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the frames of the terminal and the pictures of the documents")

// A window is a terminal of tmux with a program in it, and the home of its person.
type window struct {
	t   *testing.T
	ctx context.Context
	dir string // the directories of all windows have names of the same length, so that lines break at the same places
}

// The sizes of a window.
const (
	windowWidth  = 100
	windowHeight = 30
)

// newWindow makes a home and a directory with a README. Nothing runs yet.
func newWindow(t *testing.T) *window {
	t.Helper()
	t.Parallel()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed: .ci/run installs it")
	}
	random := make([]byte, 4)
	rand.Read(random)
	w := &window{t: t, ctx: limit(t, 2*time.Minute), dir: "/tmp/dbt-" + hex.EncodeToString(random)}
	for _, dir := range []string{w.dir, w.home(), w.garden()} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.write("garden/README.md", "Notes of a small garden.\n")
	t.Cleanup(func() {
		if err := os.RemoveAll(w.dir); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *window) home() string   { return filepath.Join(w.dir, "home") }
func (w *window) garden() string { return filepath.Join(w.dir, "garden") }

func (w *window) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		w.t.Fatal(err)
	}
}

// environment is that of a person who has set nothing but the address and the key of a model.
func (w *window) environment(model string) []string {
	env := []string{"HOME=" + w.home(), "PATH=" + filepath.Dir(node) + ":" + os.Getenv("PATH"), "LANG=C.UTF-8", "TZ=UTC",
		"DRAWBRIDGE_KEYCHAIN=off"}
	if model != "" {
		env = append(env, "OPENAI_BASE_URL="+model+"/v1", "OPENAI_API_KEY=test")
	}
	return env
}

// open starts the program in the window. What the terminal shows after the program stays until the test ends.
func (w *window) open(env []string, args ...string) {
	w.t.Helper()
	words := []string{"env", "-i", `TMUX="$TMUX"`}
	for _, word := range append(append(env, "TERM=screen-256color", drawbridge), args...) {
		words = append(words, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
	}
	// Then the terminal says whether it is as it was: canonical mode and echo are on.
	line := strings.Join(words, " ") + `; code=$?; echo; echo "exit code $code"; ` +
		`stty -a | tr ' ' '\n' | grep -x -e '-*icanon;*' -e '-*echo;*' | tr '\n' ' '; exec sleep 1000`
	w.tmux("new-session", "-d", "-x", fmt.Sprint(windowWidth), "-y", fmt.Sprint(windowHeight), "-c", w.garden(), line)
	w.t.Cleanup(func() { w.stop() })
}

// stop ends the program as the end of its terminal does, and then tmux.
func (w *window) stop() {
	cmd := exec.Command("tmux", "-S", filepath.Join(w.dir, "tmux"), "kill-server")
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Errorf("end tmux: %v %s", err, out)
	}
}

// tmux runs a command of tmux, on a server of the window's own without any configuration.
func (w *window) tmux(args ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.ctx, "tmux", append([]string{"-u", "-S", filepath.Join(w.dir, "tmux"), "-f", "/dev/null"}, args...)...)
	cmd.Env = []string{"LANG=C.UTF-8", "PATH=" + os.Getenv("PATH"), "HOME=" + w.home()}
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("tmux %q: %v %s", args, err, out)
	}
	return string(out)
}

// keys presses keys by their names in tmux; text is typed with types.
func (w *window) keys(names ...string) {
	w.t.Helper()
	w.tmux(append([]string{"send-keys"}, names...)...)
}

// types types a line and sends it.
func (w *window) types(line string) {
	w.t.Helper()
	w.tmux("send-keys", "-l", line)
	w.until("what was typed", func(text string) bool { return strings.Contains(text, line) })
	w.keys("Enter")
}

// text is what the terminal shows, without styles.
func (w *window) text() string { return w.tmux("capture-pane", "-p") }

// all is what the terminal shows and what has scrolled out of it.
func (w *window) all() string { return w.tmux("capture-pane", "-p", "-S", "-") }

// sees waits until the terminal shows all texts.
func (w *window) sees(all ...string) {
	w.t.Helper()
	for _, text := range all {
		w.until(text, func(shown string) bool { return strings.Contains(shown, text) })
	}
}

// until waits until the terminal shows something.
func (w *window) until(what string, shown func(text string) bool) {
	w.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	end := time.After(30 * time.Second)
	for last := ""; ; {
		if last = w.text(); shown(last) {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			w.t.Fatalf("%s does not come. The terminal shows:\n%s", what, last)
		}
	}
}

// answers presses the key of an answer. keys is how the question names the keys. A new question takes no answer at first,
// so the key is pressed until the question is gone.
func (w *window) answers(question, keys, key string) {
	w.t.Helper()
	w.sees(question, keys)
	var pressed time.Time
	w.until("the end of "+question, func(text string) bool {
		if !strings.Contains(text, keys) {
			return true
		}
		if time.Since(pressed) > time.Second {
			w.keys(key)
			pressed = time.Now()
		}
		return false
	})
}

// frame compares what the terminal shows, and what has scrolled out of it, with a golden file, as soon as both are the same. replaced are texts that
// differ from run to run, each with one of the same length.
func (w *window) frame(name string, replaced ...string) {
	w.t.Helper()
	w.frameFrom(name, "", replaced...)
}

// frameFrom is frame without the lines before the one that begins with a text.
func (w *window) frameFrom(name, from string, replaced ...string) {
	w.t.Helper()
	path := filepath.Join("testdata", "terminal", name+".ansi")
	want, _ := os.ReadFile(path)
	got, steady := "", 0
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(15 * time.Second); ; {
		before := got
		got = w.stable(w.tmux("capture-pane", "-p", "-e", "-S", "-"), from, replaced)
		if got == string(want) && !*update {
			return
		}
		if steady++; got != before {
			steady = 0
		}
		if *update && steady > 30 || time.Now().After(end) {
			break
		}
		<-tick.C
	}
	if !*update {
		w.t.Errorf("the frame %s differs:\n%s\nThe terminal shows:\n%s", name, cmp.Diff(string(want), got), w.text())
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// varying matches what differs from run to run, and has the same length in all.
var varying = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`^(.{88}).*… \d+(\.\d+)?(ms|s)$`), "$1… 0s"}, // the time leaves more or less room
	{regexp.MustCompile(`/tmp/dbt-[0-9a-f]{8}`), "/tmp/dbt-00000000"},
	{regexp.MustCompile(`127\.0\.0\.1:\d{5}`), "127.0.0.1:00000"},
	{regexp.MustCompile(`\b20\d\d-\d\d-\d\d \d\d:\d\d(:\d\d)?`), "2026-11-28 12:00:00"},
	{regexp.MustCompile(`bk_[0-9A-Z]{26}`), "bk_00000000000000000000000000"},
	{regexp.MustCompile(`session-[0-9a-f]{16}`), "session-0000000000000000"},
	{regexp.MustCompile(`by \w+, 2026-11-28`), "by owner, 2026-11-28"},
	{regexp.MustCompile(`client-[A-Z2-7]{26}`), "client-XXXXXXXXXXXXXXXXXXXXXXXXXX"},
	{regexp.MustCompile(`signin/(\w+)-[0-9a-f]+`), "signin/$1-0000"},
	{regexp.MustCompile(`\d+(\.\d+)? (ms|s)\b`), "0 s"},
	{regexp.MustCompile(` \d+(\.\d+)?(ms|s)\b`), " 0s"},
	{regexp.MustCompile(`working( \d+s)? \(`), "working ("},
	{regexp.MustCompile(`\d[\d.k]*(/[\d.kM]+ \(\d+%\))? tokens\b`), "1000 tokens"},
}

// stable returns a frame in one spelling of its styles, without what differs from run to run.
func (w *window) stable(shown, from string, replaced []string) string {
	rows := parseFrame(shown)
	for i, r := range rows {
		if strings.HasPrefix(r.text(), from) {
			rows = rows[i:]
			break
		}
	}
	for i := 0; i < len(replaced); i += 2 {
		rows.replace(replaced[i], replaced[i+1])
	}
	for i := range rows {
		for _, v := range varying {
			rows[i] = rows[i].replaceAll(v.pattern, v.by)
		}
	}
	return rows.String()
}
