//go:build bench

package bench

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/creack/pty"
)

// terminalStart is the time from exec to a prompt that takes keys, divided by the time from exec to the first list of
// serve. Fifty servers are configured that start and never answer.
func terminalStart(t *testing.T) []line {
	config, store := fifty(t, func(program string) {
		if err := os.WriteFile(program, []byte("#!/bin/sh\nexec sleep 600\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	})
	settings := "[agent]\nmodel = \"local/tiny\"\n[models.providers.local]\nkind = \"openai-chat\"\n" +
		"base_url = \"http://127.0.0.1:9/v1\"\n"
	home := filepath.Join(filepath.Dir(store), "drawbridge")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "drawbridge.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	var lists, prompts []float64
	for range rounds() {
		began := time.Now()
		p := start(t, serve(config, store))
		if _, err := p.stdio().call(toolsList("")); err != nil {
			t.Fatal(err)
		}
		lists = append(lists, milliseconds(began))
		p.stop()
		prompts = append(prompts, promptOnce(t, config, store))
	}
	return held([]line{{
		what:    "exec to a prompt that takes keys ÷ exec to first list, 50 servers that never answer",
		subject: fmt.Sprintf("%.1f ms", median(prompts)), control: fmt.Sprintf("%.1f ms", median(lists)),
		value: median(prompts) / median(lists), bar: 2, format: "%.2f", timed: true,
	}})
}

// promptOnce starts a session at a terminal, and returns the milliseconds until a key is shown at its prompt.
func promptOnce(t *testing.T, config, store string) float64 {
	t.Helper()
	cmd := exec.Command(drawbridge, "-i", "--mcp", config, "--store", store)
	cmd.Dir, cmd.Env = serve(config, store).Dir, append(serve(config, store).Env, "TERM=xterm-256color")
	began := time.Now()
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 100})
	if err != nil {
		t.Fatal(err)
	}
	overdue := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer func() {
		overdue.Stop()
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		tty.Close()
	}()
	var seen bytes.Buffer
	until := func(text string) {
		t.Helper()
		for part := make([]byte, 4096); !bytes.Contains(seen.Bytes(), []byte(text)); {
			n, err := tty.Read(part)
			if err != nil {
				t.Fatalf("%v after %q", err, seen.String())
			}
			seen.Write(part[:n])
		}
	}
	until("lists the commands")
	if _, err := tty.Write([]byte("q")); err != nil {
		t.Fatal(err)
	}
	seen.Reset()
	until("q")
	return milliseconds(began)
}
