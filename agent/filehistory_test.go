package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
	"github.com/google/go-cmp/cmp"
)

func openHistory(t *testing.T, dir, session string) *agent.FileHistory {
	t.Helper()
	h, err := agent.OpenHistory(dir, session)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func closeHistory(t *testing.T, h *agent.FileHistory) {
	t.Helper()
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestHistories holds what each History keeps.
func TestHistories(t *testing.T) {
	file := openHistory(t, t.TempDir(), "s")
	for name, h := range map[string]agent.History{"memory": agent.NewMemoryHistory(), "file": file} {
		t.Run(name, func(t *testing.T) {
			message := drawbridge.NewUserMessage("a\u2028<b>\n")
			want := []agent.Entry{
				{Kind: agent.SessionEntry, ID: "1", Version: 1, Time: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)},
				{Kind: agent.PromptEntry, ID: "2", Parent: "1", Run: "r", Message: &message},
				{Kind: agent.CallEntry, ID: "3", Parent: "2", Agent: "1/2",
					Call: &drawbridge.ToolCall{ID: "c", Name: "t", Arguments: json.RawMessage(`{"a`)}},
			}
			for _, e := range want {
				if err := h.Append(t.Context(), e); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, entries(t, h)); diff != "" || h.ID() == "" {
				t.Error(diff)
			}
		})
	}
}

// TestFileHistoryIsPrivate holds who may read and write a session.
func TestFileHistoryIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the system has no such permissions")
	}
	dir := filepath.Join(t.TempDir(), "sessions")
	h := openHistory(t, dir, "s")
	if _, err := agent.OpenHistory(dir, "s"); !errors.Is(err, agent.ErrInUse) {
		t.Errorf("a second writer: %v", err)
	}
	if err := os.Chmod(h.Path(), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := h.Append(t.Context(), agent.Entry{Kind: agent.SessionEntry, ID: "1"}); err != nil {
		t.Fatal(err)
	}
	closeHistory(t, h)
	if err := h.Append(t.Context(), agent.Entry{Kind: agent.SessionEntry, ID: "2"}); err == nil {
		t.Error("a closed history was written")
	}
	h = openHistory(t, dir, "s")
	for path, want := range map[string]os.FileMode{dir: 0o700, h.Path(): 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if err := os.Symlink(h.Path(), filepath.Join(dir, "link.jsonl")); err != nil {
		t.Fatal(err)
	}
	for _, session := range []string{"link", "../s", "", "a/b", ".", strings.Repeat("x", 101)} {
		if _, err := agent.OpenHistory(dir, session); err == nil {
			t.Errorf("the session %q was opened", session)
		}
	}
}

// TestTornLine cuts the file at each byte of its last line, and puts other bytes there.
func TestTornLine(t *testing.T) {
	dir := t.TempDir()
	h := openHistory(t, dir, "s")
	for _, id := range []string{"1", "2", "3"} {
		if err := h.Append(t.Context(), agent.Entry{Kind: agent.SessionEntry, ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	closeHistory(t, h)
	whole, err := os.ReadFile(h.Path())
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	two, last := string(lines[0])+string(lines[1]), string(lines[2])
	torn := []string{last + "\x00\x00\x00", last + "{}\n", last + "{\"kind\":\n\x00\n"}
	for i := range last {
		torn = append(torn, last[:i])
	}
	for _, end := range torn {
		if err := os.WriteFile(h.Path(), []byte(two+end), 0o600); err != nil {
			t.Fatal(err)
		}
		h := openHistory(t, dir, "s")
		whole := 2
		if rest, ok := strings.CutPrefix(end, last); ok {
			whole, end = 3, rest
		}
		if n := len(entries(t, h)); n != whole || h.Cut() != int64(len(end)) {
			t.Errorf("with %q, there are %d entries, %d bytes were cut off", end, n, h.Cut())
		}
		if err := h.Append(t.Context(), agent.Entry{Kind: agent.SessionEntry, ID: "4"}); err != nil {
			t.Fatal(err)
		}
		if n := len(entries(t, h)); n != whole+1 {
			t.Errorf("with %q, there are %d entries after one more", end, n)
		}
		closeHistory(t, h)
	}
}

// TestDamagedFile has a line in the middle that is not an entry, and a format of the future.
func TestDamagedFile(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct{ text, want string }{
		{"{\"kind\":\"session\",\"id\":\"1\"}\nnonsense\n{\"kind\":\"session\",\"id\":\"2\"}\n", "line 2 is damaged"},
		{"{\"kind\":\"session\",\"id\":\"1\",\"version\":99}\n", "newer version"},
	} {
		path := filepath.Join(dir, "s.jsonl")
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := agent.OpenHistory(dir, "s"); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v", tt.text, err)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != tt.text {
			t.Errorf("the file became %q, %v", after, err)
		}
	}
}

func TestListSessions(t *testing.T) {
	dir := t.TempDir()
	if all, err := agent.ListSessions(filepath.Join(dir, "none")); all != nil || err != nil {
		t.Error(all, err)
	}
	at := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	for _, id := range []string{"old", "new", "empty"} {
		h := openHistory(t, dir, id)
		at = at.Add(time.Hour)
		s := open(t, agent.Options{Model: answers(calls("echo"), says("a")), Tools: &box{}, History: h,
			Now: func() time.Time { return at }})
		if id != "empty" {
			run(t, s, "prompt of "+id, agent.Completed)
			if err := s.SetName(t.Context(), "name of "+id); err != nil {
				t.Fatal(err)
			}
			if err := s.SetMode(t.Context(), agent.PlanOnly); err != nil {
				t.Fatal(err)
			}
		}
		closeHistory(t, h)
	}
	if err := os.WriteFile(filepath.Join(dir, "bad.jsonl"), []byte("x\n{\"kind\":\"name\",\"id\":\"1\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := agent.ListSessions(dir)
	if err != nil {
		t.Fatal(err)
	}
	info := func(id string, at time.Time) agent.SessionInfo {
		return agent.SessionInfo{ID: id, Path: filepath.Join(dir, id+".jsonl"), Name: "name of " + id,
			FirstPrompt: "prompt of " + id, Created: at, Updated: at, Messages: 3, LastModel: "test/script",
			Settings: agent.Settings{Name: "name of " + id, Mode: agent.PlanOnly}}
	}
	want := []agent.SessionInfo{info("new", at.Add(-time.Hour)), info("old", at.Add(-2*time.Hour)),
		{ID: "bad", Path: filepath.Join(dir, "bad.jsonl"),
			Err: "line 1 is damaged: invalid character 'x' looking for beginning of value\nit has no entry"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// brokenHistory fails from one entry on.
type brokenHistory struct {
	agent.History
	fails func(agent.Entry) bool
}

var errDisk = errors.New("disk full")

func (h brokenHistory) Append(ctx context.Context, e agent.Entry) error {
	if h.fails(e) {
		return errDisk
	}
	return h.History.Append(ctx, e)
}

// TestHistoryFails has a history that cannot be written: the run ends before the next step.
func TestHistoryFails(t *testing.T) {
	for _, kind := range []agent.EntryKind{agent.SessionEntry, agent.InstructionsEntry, agent.PromptEntry, agent.ToolsEntry,
		agent.ModelEntry, agent.CallEntry, agent.ResultEntry} {
		t.Run(string(kind), func(t *testing.T) {
			tools, model := &box{}, answers(calls("echo"), says("x"))
			s := open(t, agent.Options{Model: model, Tools: tools, History: brokenHistory{agent.NewMemoryHistory(),
				func(e agent.Entry) bool { return e.Kind == kind }}})
			result, err := s.Run(t.Context(), prompt("x"), nil)
			if result.Outcome != agent.Failed || !errors.Is(err, errDisk) {
				t.Errorf("the run ended with %s, %v", result.Outcome, err)
			}
			before := kind != agent.ModelEntry && kind != agent.CallEntry && kind != agent.ResultEntry
			if before && len(model.requests) > 0 || kind != agent.ResultEntry && len(tools.made) > 0 ||
				len(model.requests) > 1 {
				t.Errorf("%d requests, %d calls", len(model.requests), len(tools.made))
			}
		})
	}
}

func FuzzReadHistory(f *testing.F) {
	f.Add([]byte("{\"kind\":\"session\",\"id\":\"1\"}\n{\"kind\":\"prompt\",\"id\":\"2\",\"parent\":\"1\"}\n"))
	f.Add([]byte("{\"kind\":\"model\",\"id\":\"1\",\"parent\":\"1\",\"message\":{\"parts\":[{\"toolCall\":{\"id\":\"c\"}}]}}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "s.jsonl"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		h, err := agent.OpenHistory(dir, "s")
		if err != nil {
			return
		}
		defer func() { _ = h.Close() }()
		// Either the session is refused, or each of its calls has a result.
		s, err := agent.New(t.Context(), agent.Options{Model: answers(says("x")), History: h})
		if err != nil {
			return
		}
		if _, err := s.Run(t.Context(), prompt("x"), nil); err != nil {
			t.Error(err)
		}
		if _, err := s.Tree(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
