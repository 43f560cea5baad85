//go:build peers && unix

package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/llm"
)

// An agentHome is a home with two servers from npm and the models of other people's fake: those of the provider p, and
// the model spare in the place of one that does not answer.
type agentHome struct {
	t          *testing.T
	home, work string
}

func newAgentHome(t *testing.T, kind, model string) agentHome {
	t.Helper()
	h := agentHome{t, t.TempDir(), t.TempDir()}
	rows, err := json.Marshal(map[string]any{"servers": map[string]any{
		"fs":  map[string]any{"command": node, "args": []string{module(t, "@modelcontextprotocol/server-filesystem/dist/index.js"), h.work}, "cwd": h.work},
		"mem": map[string]any{"command": node, "args": []string{module(t, "@modelcontextprotocol/server-memory/dist/index.js")}, "env": map[string]string{"MEMORY_FILE_PATH": filepath.Join(h.home, "memory.json")}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	settings := fmt.Sprintf("[flow]\nagent = \"off\"\n[agent]\nmodel = \"p/%s\"\nfallback_model = \"p/spare\"\n[models.providers.p]\nkind = %q\nbase_url = %q\napi_key = \"key\"\n", model, kind, aimock(t, "aimock.mjs"))
	for path, text := range map[string]string{
		filepath.Join(h.home, "drawbridge", "mcp.json"): string(rows), filepath.Join(h.home, "drawbridge", "drawbridge.toml"): settings,
		filepath.Join(h.work, "a.txt"): "text of a\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// command returns the program with a prompt.
func (h agentHome) command(ctx context.Context, prompt string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, drawbridge, "-p", "--permission-mode", "bypass", "--output-format", "stream-json", prompt)
	cmd.Dir = h.work
	cmd.Env = append(os.Environ(), "HOME="+h.home, "XDG_CONFIG_HOME="+h.home, "XDG_STATE_HOME="+h.home, "DRAWBRIDGE_KEYCHAIN=off")
	return cmd
}

// An agentEvent is a line of the program's output.
type agentEvent struct {
	Type, Text, Outcome, Error string
	Result                     *struct {
		Name, Text string
		IsError    bool
	}
}

// run runs a prompt, and returns the events and the exit code.
func (h agentHome) run(prompt string) (events []agentEvent, code int, stderr string) {
	h.t.Helper()
	var out, errs bytes.Buffer
	cmd := h.command(limit(h.t, 2*time.Minute), prompt)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			h.t.Fatal(err)
		}
	}
	for line := range strings.Lines(out.String()) {
		var e agentEvent
		decode(h.t, []byte(line), &e)
		events = append(events, e)
	}
	return events, cmd.ProcessState.ExitCode(), errs.String()
}

// TestAgentAtTheCommandLine runs prompts with "drawbridge -p": the APIs as other people implemented them, Drawbridge's
// own tools and two servers from npm, and providers that fail.
func TestAgentAtTheCommandLine(t *testing.T) {
	t.Parallel()
	for kind, name := range map[string]string{llm.KindAnthropic: "claude-sonnet-5", llm.KindOpenAI: "gpt-5", llm.KindOpenAIChat: "gpt-5", llm.KindGemini: "gemini-3.8-flash"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			h := newAgentHome(t, kind, name)
			h.checkSteps()
			for _, tt := range []struct {
				prompt, text, problem string
				code                  int
			}{
				{"Once", "Now it works.", "", 0},                          // 429
				{"Busy", "Not busy any more.", "", 0},                     // 529
				{"Fall back", "The spare model answers.", "", 0},          // 500 each time
				{"Cut for good", "", "the provider cannot be reached", 1}, // a broken stream each time, of both models
				{"Too much", "", "context too long", 1},                   // not repeated, not sent to the spare model
			} {
				events, code, stderr := h.run(tt.prompt)
				last := events[len(events)-1]
				if code != tt.code || last.Text != tt.text || !strings.Contains(last.Error, tt.problem) || tt.problem != "" && last.Outcome != "failed" {
					t.Errorf("%s: code %d, %+v, %s", tt.prompt, code, last, stderr)
				}
			}
			h.checkCancellation()
		})
	}
}

// checkSteps has a model call three tools at once and then a fourth.
func (h agentHome) checkSteps() {
	h.t.Helper()
	events, code, stderr := h.run("Use all tools")
	results := map[string]string{}
	for _, e := range events {
		if e.Result != nil {
			results[e.Result.Name] = e.Result.Text
		}
	}
	for name, want := range map[string]string{"read": "text of a", "fs__read_text_file": "text of a", "mem__create_entities": "Drawbridge", "mem__read_graph": "carries messages"} {
		if !strings.Contains(results[name], want) {
			h.t.Errorf("%s returned %q", name, results[name])
		}
	}
	if last := events[len(events)-1]; code != 0 || last.Text != "All tools work." || last.Outcome != "completed" {
		h.t.Errorf("code %d, %+v, %s", code, last, stderr)
	}
}

// checkCancellation interrupts the program in the middle of a tool.
func (h agentHome) checkCancellation() {
	h.t.Helper()
	ctx := limit(h.t, 2*time.Minute)
	var out bytes.Buffer
	cmd := h.command(ctx, "Wait long")
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	var pid int
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for pid == 0 && ctx.Err() == nil {
		<-poll.C
		text, _ := os.ReadFile(filepath.Join(h.work, "began")) // it comes
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		h.t.Error(err)
	}
	err := cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(out.String(), `"outcome":"cancelled"`) {
		h.t.Errorf("code %d, %v, %s", code, err, &out)
	}
	for ctx.Err() == nil && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		<-poll.C
	}
	if ctx.Err() != nil {
		h.t.Error("the command of the tool still runs")
	}
}
