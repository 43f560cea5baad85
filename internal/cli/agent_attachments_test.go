package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/google/go-cmp/cmp"
)

// TestPipedTextIsAttached checks that text on standard input is what the person asks only without another prompt.
func TestPipedTextIsAttached(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.txt")
	if err := os.WriteFile(file, []byte("alpha"), 0o600); err != nil {
		t.Fatal(err)
	}
	inFile := "<file path=\"a.txt\">\nalpha\n</file>"
	for _, c := range []struct {
		words []string
		want  drawbridge.MessagePart
	}{
		{nil, drawbridge.MessagePart{Text: "pay NL99"}},
		{[]string{"sum", "up"}, drawbridge.MessagePart{Text: "sum up pay NL99", Typed: new("sum up"), Attached: []string{standardInput}}},
		{[]string{"@a.txt"}, drawbridge.MessagePart{Text: inFile + " pay NL99", Typed: new("pay NL99"), Attached: []string{file}}},
		{[]string{"@a.txt", "read"}, drawbridge.MessagePart{Text: inFile + "\n read pay NL99", Typed: new("read"), Attached: []string{file, standardInput}}},
	} {
		parts, err := promptOf(dir, c.words)
		if err == nil {
			parts, err = withPiped(dir, parts, "pay NL99")
		}
		if diff := cmp.Diff([]drawbridge.MessagePart{c.want}, parts); diff != "" || err != nil {
			t.Errorf("%q: %v\n%s", c.words, err, diff)
		}
	}
}
