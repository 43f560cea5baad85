package cli_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// TestPrintSaysWhichValueNeedsAnEndorsement runs a prompt without a person: what the model makes after it has read the
// answer of a server is refused, and the person is told why.
func TestPrintSaysWhichValueNeedsAnEndorsement(t *testing.T) {
	d, file := noteDesk(t)
	m := agentHome(t, d.home)
	d.writeJSON(".config/drawbridge/mcp.json", map[string]any{"servers": map[string]any{"notes": mcptest.ServerRow(t, "notes", file)}})
	calls := []string{`{"text":"first"}`, `{"text":"second"}`, `{"text":"typed"}`}
	m.answersWith(func(string, string) (answer, tool, arguments string) {
		if len(calls) == 0 {
			return "done", "", ""
		}
		next := calls[0]
		calls = calls[1:]
		return "", "notes__note", next
	})
	_, stderr := d.run(0, "-p", "--permission-mode", "bypass", "note typed")
	wantNotes(t, file, "first", "typed")
	const want = `note of the server notes was refused: with --print, no person is asked who could endorse its values:
  text (untrusted, from result notes__note)
`
	if !strings.HasPrefix(stderr, want) || !strings.Contains(stderr, "information-flow.md") {
		t.Errorf("it does not say %q:\n%s", want, stderr)
	}
	out, _ := d.run(0, "audit", "log", "--failed")
	if !regexp.MustCompile(`(?m) refused by drawbridge -p: no endorsement for text +[0-9.]+m?s `).MatchString(out) {
		t.Errorf("the audit:\n%s", out)
	}
}

// TestExplainOfASession explains calls of a session that has ended: it is found by the beginning of its ID, and values
// that the person had typed are trusted.
func TestExplainOfASession(t *testing.T) {
	d, file := noteDesk(t)
	m := agentHome(t, d.home)
	d.writeJSON(".config/drawbridge/mcp.json", map[string]any{"servers": map[string]any{"notes": mcptest.ServerRow(t, "notes", file)}})
	calls := 0
	m.answersWith(func(string, string) (answer, tool, arguments string) {
		if calls++; calls > 1 {
			return "done", "", ""
		}
		return "", "notes__note", `{"text":"first"}`
	})
	d.run(0, "-p", "--permission-mode", "bypass", "note typed")
	sessions, err := filepath.Glob(filepath.Join(d.home, ".local", "state", "drawbridge", "sessions", "--*", "*.jsonl"))
	if err != nil || len(sessions) != 1 {
		t.Fatalf("%v %v", sessions, err)
	}
	id := strings.TrimSuffix(filepath.Base(sessions[0]), ".jsonl")
	explain := func(want int, text, thread string) string {
		out, stderr := d.run(want, "policy", "explain", "notes__note", "text="+text, "--thread", thread)
		return out + stderr
	}
	for _, thread := range []string{id, id[:20], strings.ToLower(id[:20])} {
		if out := explain(0, "other", thread); !strings.Contains(out, "text (untrusted, from result notes__note)") {
			t.Errorf("%s, a value that was not typed:\n%s", thread, out)
		}
		if out := explain(0, "typed", thread); !strings.Contains(out, "information flow: allow; the run is untrusted") {
			t.Errorf("%s, a value that was typed:\n%s", thread, out)
		}
	}
	const none = "explain the call: no session has an ID that begins with 01NONE (/session in a session shows its ID)"
	if out := explain(1, "other", "01NONE"); out != "drawbridge: "+none+"\n" {
		t.Errorf("an unknown session: %s", out)
	}
	d.run(0, "-p", "hello")
	const two = "explain the call: 2 sessions have an ID that begins with 0 (write more of the ID)"
	if out := explain(2, "other", "0"); out != "drawbridge: "+two+"\n" {
		t.Errorf("a beginning of two IDs: %s", out)
	}
}
