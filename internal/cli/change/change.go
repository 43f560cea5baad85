// Package change shows to people how a definition changed: word by word, with what kind of change it is.
package change

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
	"github.com/drawbridge-mcp/drawbridge/shield"
)

// A Difference is between two definitions of one tool.
type Difference struct {
	// Kind is that of the change that matters most, see shield.Change.Kind; "unreadable" where they cannot be compared.
	Kind string `json:"kind"`
	shield.Comparison
}

// Between compares two definitions. What cannot be compared is of the highest risk.
func Between(s *shield.Shield, before, after json.RawMessage) Difference {
	c, err := s.Compare(before, after)
	switch worst := c.Worst(); {
	case err != nil:
		return Difference{"unreadable", shield.Comparison{Risk: shield.High, Ask: true, Changes: []shield.Change{}, Reasons: []shield.Reason{}}}
	case worst == nil: // the same to one reader, and not to another
		c.Risk, c.Ask = shield.High, true
		return Difference{"unreadable", c}
	default:
		return Difference{worst.Kind(), c}
	}
}

// String gives the kind and the risk.
func (d Difference) String() string { return fmt.Sprintf("%s (%s)", d.Kind, d.Risk) }

// How much of a text is shown around what changed in it, and of the changes of one definition.
const (
	maxAround  = 60
	maxChanges = 20
)

// Print writes each change, indented: [-gone-] and {+new+} as git marks words, in colour for a terminal.
func (d Difference) Print(w io.Writer, colour bool) {
	if d.Kind == "unreadable" {
		fmt.Fprintln(w, "  it says something twice, or is no JSON: two readers may read two things")
	}
	for i, c := range d.Changes {
		if i == maxChanges {
			safetext.Fprintf(w, "  and %d more changes (--json has them all)\n", len(d.Changes)-i)
			return
		}
		safetext.Fprintf(w, "  %s, %s: ", safetext.Exact(c.Path), c.Kind())
		for i, r := range c.Words() {
			io.WriteString(w, marked(r, colour, i == 0))
		}
		fmt.Fprintln(w)
	}
}

// marked is a run as it is printed. Of a long one that both texts have the middle is left out, and of the first one the beginning.
func marked(r shield.Run, colour, first bool) string {
	before, after := map[byte]string{'-': "[-", '+': "{+"}[r.Op], map[byte]string{'-': "-]", '+': "+}"}[r.Op]
	if colour && r.Op != ' ' {
		before, after = map[byte]string{'-': "\x1b[31m", '+': "\x1b[32m"}[r.Op]+before, after+"\x1b[0m"
	}
	if text := []rune(r.Text); r.Op == ' ' && len(text) > 2*maxAround {
		head := string(text[:maxAround])
		if first {
			head = ""
		}
		return head + "…" + string(text[len(text)-maxAround:])
	}
	return before + r.Text + after
}
