//go:build hosts

package hosts

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A home is all that a host sees of a person: a home directory that ends with the test, and these variables. Nothing of
// the person who runs the test is in it.
type home struct {
	dir string
	env []string
}

// newHome makes a home whose owner has one MCP server, npm's server-everything, configured for Drawbridge. At the end
// of the test no program that was started there, at first or at third hand, may be left, and none may have asked for
// anything that is not on loopback.
func newHome(t *testing.T, env ...string) *home {
	t.Helper()
	h := &home{dir: t.TempDir()}
	proxy := refuse(t)
	h.env = append([]string{
		"HOME=" + h.dir,
		"PATH=/usr/local/bin:/usr/bin:/bin",
		"TMPDIR=" + h.mkdir(t, "tmp"),
		"XDG_CONFIG_HOME=" + h.mkdir(t, ".config"),
		"XDG_STATE_HOME=" + h.mkdir(t, ".local/state"),
		"XDG_DATA_HOME=" + h.mkdir(t, ".local/share"),
		"XDG_CACHE_HOME=" + h.mkdir(t, ".cache"),
		"XDG_RUNTIME_DIR=" + h.mkdir(t, "run"),
		"HTTP_PROXY=" + proxy, "HTTPS_PROXY=" + proxy, "NO_PROXY=127.0.0.1,localhost",
		"http_proxy=" + proxy, "https_proxy=" + proxy, "no_proxy=127.0.0.1,localhost",
	}, env...)
	t.Cleanup(func() {
		if left := h.leftovers(); len(left) > 0 {
			t.Errorf("processes were left behind:\n%s", strings.Join(left, "\n"))
		}
	})
	h.write(t, ".config/drawbridge/mcp.json", object{"mcpServers": object{"everything": object{
		"command": node,
		"args":    []string{module(t, "@modelcontextprotocol/server-everything/dist/index.js"), "stdio"},
	}}})
	return h
}

// refuse is a proxy that lets nothing through. Who asks it for anything fails the test.
func refuse(t *testing.T) string {
	var mu sync.Mutex
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.Method+" "+r.Host)
		http.Error(w, "there is no network here", http.StatusForbidden)
	}))
	t.Cleanup(func() {
		proxy.Close()
		if diff := cmp.Diff([]string(nil), asked); diff != "" {
			t.Errorf("asked for what is not on loopback:\n%s", diff)
		}
	})
	return proxy.URL
}

func (h *home) mkdir(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(h.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

type object = map[string]any

// write writes a file of the home: a string as it is, anything else as JSON.
func (h *home) write(t *testing.T, name string, content any) {
	t.Helper()
	text, ok := content.(string)
	if !ok {
		b, err := json.MarshalIndent(content, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		text = string(b) + "\n"
	}
	h.mkdir(t, filepath.Dir(name))
	if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run runs a program in the home, in an empty directory and without a terminal, and gives what it prints on standard
// output. One that fails, or is not done in two minutes, ends the test.
func (h *home) run(t *testing.T, program string, args ...string) string {
	t.Helper()
	stdout, _ := h.runBoth(t, program, args...)
	return stdout
}

// runBoth gives what the program prints on standard error, too.
func (h *home) runBoth(t *testing.T, program string, args ...string) (string, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = h.mkdir(t, "work"), h.env
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &stdout, &stderr, 5*time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.String(), stderr.String()
}

// leftovers ends the processes that have the home for theirs, and names them. One that is about to end is given ten
// seconds. Where there is no /proc it finds none.
func (h *home) leftovers() []string {
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	left := h.processes()
	for range 100 {
		if len(left) == 0 {
			return nil
		}
		<-again.C
		left = h.processes()
	}
	var named []string
	for pid, line := range left {
		named = append(named, fmt.Sprint(pid, " ", line))
		syscall.Kill(pid, syscall.SIGKILL)
	}
	return named
}

// processes gives the command lines of the processes that were started with HOME set to the home.
func (h *home) processes() map[int]string {
	found := map[int]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		var pid int
		fmt.Sscanf(file, "/proc/%d/", &pid)
		env, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(append([]byte{0}, env...), []byte("\x00HOME="+h.dir+"\x00")) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		found[pid] = strings.ReplaceAll(string(line), "\x00", " ")
	}
	return found
}
