package cli_test

import (
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
	for _, want := range []string{"note was refused", "text (untrusted, from result notes__note)", "information-flow.md"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("it does not say %q:\n%s", want, stderr)
		}
	}
}
