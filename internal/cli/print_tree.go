package cli

import (
	"io"
	"strings"

	"github.com/rivo/uniseg"

	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A treeNode is a node of a printed tree: a line, details below it, and the nodes below it.
type treeNode struct {
	line    string
	details []string
	below   []treeNode
}

// addDetail adds a detail, unless it is empty.
func (n *treeNode) addDetail(text string) {
	if text != "" {
		n.details = append(n.details, text)
	}
}

// printTree prints a tree. Each text is made printable. A text is printed on one line; on a terminal it continues on
// the next line, at the same place of the tree, if it is too long.
func printTree(w io.Writer, root treeNode) error {
	p := treePrinter{width: terminalWidth(w)}
	p.add(root, "", "")
	_, err := io.WriteString(w, p.text.String())
	return err
}

// A treePrinter has the text of a tree. width is that of the terminal, and 0 if no line is broken.
type treePrinter struct {
	text  strings.Builder
	width int
}

// add adds a node. first is what precedes its line, and rest what precedes the lines after it.
func (p *treePrinter) add(n treeNode, first, rest string) {
	bar := "    "
	if len(n.below) > 0 {
		bar = "│   "
	}
	p.addText(n.line, first, rest+bar)
	for _, d := range n.details {
		p.addText(d, rest+bar, rest+bar+"  ")
	}
	for i, below := range n.below {
		if i == len(n.below)-1 {
			p.add(below, rest+"└── ", rest+"    ")
		} else {
			p.add(below, rest+"├── ", rest+"│   ")
		}
	}
}

// addText adds a text that continues on further lines if it is wider than the terminal. A word is not broken. first
// precedes the first line, and rest the others.
func (p *treePrinter) addText(text, first, rest string) {
	text = safetext.Line(text)
	prefix := first
	for p.width > 0 && uniseg.StringWidth(prefix+text) > p.width {
		end := lastBreak(text, p.width-uniseg.StringWidth(prefix))
		if end < 0 {
			break
		}
		p.text.WriteString(prefix + text[:end] + "\n")
		text, prefix = text[end+1:], rest
	}
	p.text.WriteString(prefix + text + "\n")
}

// lastBreak returns the place of the last space before which text fits a width, or of the first space if none does; -1
// without spaces.
func lastBreak(text string, width int) int {
	last := -1
	for i, r := range text {
		if r != ' ' {
			continue
		}
		if last >= 0 && uniseg.StringWidth(text[:i]) > width {
			break
		}
		last = i
	}
	return last
}
