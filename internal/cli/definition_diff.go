package cli

import (
	"fmt"
	"io"

	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
)

// maxContextRunes limits the unchanged text that is printed on each side of a change, in runes. maxPrintedChanges
// limits the number of printed changes of one definition.
const (
	maxContextRunes   = 60
	maxPrintedChanges = 20
)

// PrintDefinitionDiff writes the changes of a definition, indented, at most maxPrintedChanges of them. Removed words
// are marked [-gone-] and new words {+new+}, as in git, and coloured if colour is set.
func PrintDefinitionDiff(w io.Writer, d admin.DefinitionDiff, colour bool) {
	if d.Kind == "unreadable" {
		fmt.Fprintln(w, "  duplicate keys or invalid JSON: parsers may disagree")
	}
	for i, c := range d.Changes {
		if i == maxPrintedChanges {
			safetext.Fprintf(w, "  and %d more changes (--json has them all)\n", len(d.Changes)-i)
			return
		}
		safetext.Fprintf(w, "  %s, %s: ", safetext.Exact(c.Path), c.Description())
		for i, r := range c.DiffWords() {
			io.WriteString(w, formatTextRun(r, colour, i == 0))
		}
		fmt.Fprintln(w)
	}
}

// formatTextRun formats a run of removed, new or unchanged text. In a long unchanged run, "…" replaces the middle. In
// the first run of a change, it replaces the beginning, so that only the text right before the change remains.
func formatTextRun(r shield.DiffRun, colour, first bool) string {
	before, after := map[byte]string{'-': "[-", '+': "{+"}[r.Op], map[byte]string{'-': "-]", '+': "+}"}[r.Op]
	if colour && r.Op != ' ' {
		before, after = map[byte]string{'-': "\x1b[31m", '+': "\x1b[32m"}[r.Op]+before, after+"\x1b[0m"
	}
	if text := []rune(r.Text); r.Op == ' ' && len(text) > 2*maxContextRunes {
		head := string(text[:maxContextRunes])
		if first {
			head = ""
		}
		return head + "…" + string(text[len(text)-maxContextRunes:])
	}
	return before + r.Text + after
}
