package cli

import (
	"io"
	"strings"

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

// printTree prints a tree. Each text is printed on one line, and made printable.
func printTree(w io.Writer, root treeNode) error {
	var b strings.Builder
	root.write(&b, "", "")
	_, err := io.WriteString(w, b.String())
	return err
}

// write writes a node. first is what precedes its line, and rest what precedes the lines after it.
func (n treeNode) write(b *strings.Builder, first, rest string) {
	b.WriteString(first + safetext.Line(n.line) + "\n")
	bar := "    "
	if len(n.below) > 0 {
		bar = "│   "
	}
	for _, d := range n.details {
		b.WriteString(rest + bar + safetext.Line(d) + "\n")
	}
	for i, below := range n.below {
		if i == len(n.below)-1 {
			below.write(b, rest+"└── ", rest+"    ")
		} else {
			below.write(b, rest+"├── ", rest+"│   ")
		}
	}
}
